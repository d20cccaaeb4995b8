// Kernel rows of stored vectors, kept within a number of bytes; the row used longest ago goes first.
//
// A row has a value for each slot. It is known to be right for slots that were taken no later than `time`; the rest are
// filled in when the row is next used.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

struct CachedRow {
    std::vector<double> values;
    uint64_t time = 0;
    uint64_t epoch = 0;  // of a row without a slot: which numbering of the slots it was computed for
};

class RowCache {
 public:
    explicit RowCache(size_t limit) : limit_(limit) {}

    bool holds(size_t slot) const { return slot < rows_.size() && !rows_[slot].row.values.empty(); }
    CachedRow& at(size_t slot) { return rows_[slot].row; }
    // The row of a slot, marked as used, with room for n values. Others make way for it, but for the one in use last:
    // a step needs two.
    CachedRow& use(size_t slot, size_t n) {
        if (slot >= rows_.size()) rows_.resize(slot + 1);
        Entry& entry = rows_[slot];
        if (entry.row.values.size() < n) {
            // A quarter more than asked for: rows grow with every vector stored.
            const size_t room = n <= 64 ? 64 : (n + n / 4 + 63) / 64 * 64;
            bytes_ -= size(entry);
            count_ += entry.row.values.empty();
            if (entry.row.values.empty()) entry.row.time = 0;
            std::vector<double> wider(room);
            std::copy(entry.row.values.begin(), entry.row.values.end(), wider.begin());
            entry.row.values.swap(wider);
            bytes_ += size(entry);
        }
        entry.used = ++uses_;
        make_room(slot);
        return entry.row;
    }
    // Takes over a row that was computed for a vector that has now a slot.
    void adopt(size_t slot, CachedRow& row) {
        CachedRow& own = use(slot, row.values.size());
        std::copy(row.values.begin(), row.values.end(), own.values.begin());
        own.time = row.time;
    }
    bool has_room(size_t n) const { return bytes_ + (n + n / 4 + 64) * sizeof(double) <= limit_; }
    void drop(size_t slot) {
        if (!holds(slot)) return;
        bytes_ -= size(rows_[slot]);
        --count_;
        rows_[slot] = Entry();
    }
    // Slot from[i] becomes slot i, in rows and as columns of rows.
    void renumber(const std::vector<size_t>& from) {
        std::vector<Entry> rows(from.size());
        for (size_t to = 0; to < from.size(); ++to)
            if (holds(from[to])) std::swap(rows[to], rows_[from[to]]);
        rows_.swap(rows);
        bytes_ = count_ = 0;
        for (Entry& entry : rows_) {
            std::vector<double>& values = entry.row.values;
            if (values.empty()) continue;
            for (size_t to = 0; to < from.size() && from[to] < values.size(); ++to) values[to] = values[from[to]];
            bytes_ += size(entry);
            ++count_;
        }
    }

    size_t bytes() const { return bytes_; }
    size_t limit() const { return limit_; }
    size_t count() const { return count_; }

 private:
    struct Entry {
        CachedRow row;
        uint64_t used = 0;
    };
    static size_t size(const Entry& entry) { return entry.row.values.capacity() * sizeof(double); }
    void make_room(size_t keep) {
        while (bytes_ > limit_ && count_ > 2) {
            size_t oldest = keep;
            for (size_t slot = 0; slot < rows_.size(); ++slot)
                if (slot != keep && holds(slot) && (oldest == keep || rows_[slot].used < rows_[oldest].used))
                    oldest = slot;
            drop(oldest);
        }
    }

    size_t limit_, bytes_ = 0, count_ = 0;
    uint64_t uses_ = 0;
    std::vector<Entry> rows_;
};

}  // namespace onepass
