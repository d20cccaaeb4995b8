// A cache of kernel rows: K(x_slot, x_s) of a stored vector with all others. It is limited in bytes; the row that was
// not used for the longest time is removed first.
//
// A row has a value for each slot. The values of slots that were filled at `time` or earlier are valid. The others are
// computed when the row is next used.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

struct CachedRow {
    std::vector<double> values;
    uint64_t time = 0;
    uint64_t numbering = 0;  // of a row without a slot: the numbering of the slots that it was computed for
};

class RowCache {
 public:
    explicit RowCache(size_t limit) : limit_(limit) {}

    bool contains(size_t slot) const { return slot < rows_.size() && !rows_[slot].row.values.empty(); }
    CachedRow& at(size_t slot) { return rows_[slot].row; }
    // The row of a slot, with memory for n values, marked as used last. Other rows are removed for it, but never the
    // row that was used just before: a step needs two.
    CachedRow& use(size_t slot, size_t n) {
        if (slot >= rows_.size()) rows_.resize(slot + 1);
        Entry& entry = rows_[slot];
        if (entry.row.values.size() < n) {
            // A quarter more than needed, since rows grow with every stored vector.
            const size_t capacity = n <= 64 ? 64 : (n + n / 4 + 63) / 64 * 64;
            bytes_ -= size(entry);
            count_ += entry.row.values.empty();
            if (entry.row.values.empty()) entry.row.time = 0;
            std::vector<double> wider(capacity);
            std::copy(entry.row.values.begin(), entry.row.values.end(), wider.begin());
            entry.row.values.swap(wider);
            bytes_ += size(entry);
        }
        entry.used = ++uses_;
        remove_oldest(slot);
        return entry.row;
    }
    // Adds the row of a vector that was stored after the row was computed.
    void insert(size_t slot, CachedRow& row) {
        CachedRow& own = use(slot, row.values.size());
        std::copy(row.values.begin(), row.values.end(), own.values.begin());
        own.time = row.time;
    }
    bool has_room(size_t n) const { return bytes_ + (n + n / 4 + 64) * sizeof(double) <= limit_; }
    void remove(size_t slot) {
        if (!contains(slot)) return;
        bytes_ -= size(rows_[slot]);
        --count_;
        rows_[slot] = Entry();
    }
    // Slot from[i] becomes slot i. Rows and the values within rows move.
    void renumber(const std::vector<size_t>& from) {
        std::vector<Entry> rows(from.size());
        for (size_t to = 0; to < from.size(); ++to)
            if (contains(from[to])) std::swap(rows[to], rows_[from[to]]);
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
    // Removes rows until the limit is kept; never the row of slot `kept`, and never the last two.
    void remove_oldest(size_t kept) {
        while (bytes_ > limit_ && count_ > 2) {
            size_t oldest = kept;
            for (size_t slot = 0; slot < rows_.size(); ++slot)
                if (slot != kept && contains(slot) && (oldest == kept || rows_[slot].used < rows_[oldest].used))
                    oldest = slot;
            remove(oldest);
        }
    }

    size_t limit_, bytes_ = 0, count_ = 0;
    uint64_t uses_ = 0;
    std::vector<Entry> rows_;
};

}  // namespace onepass
