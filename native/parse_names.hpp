// Feature names and their columns: a growing table, read by the parsing threads, extended in the order of the stream.
#pragma once
#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <vector>

#include "hash.hpp"

namespace onepass {

class Names {
 public:
    Names() { slots_.assign(1024, {0, -1}); }

    // The column of a name, or -1. The hash is murmur3 of the name.
    int32_t find(std::string_view name, uint32_t hash) const {
        for (size_t at = hash & mask();; at = (at + 1) & mask()) {
            const Slot& slot = slots_[at];
            if (slot.column < 0) return -1;
            if (slot.hash == hash && (*this)[size_t(slot.column)] == name) return slot.column;
        }
    }

    int32_t intern(std::string_view name, uint32_t hash) {
        const int32_t known = find(name, hash);
        if (known >= 0) return known;
        if (2 * (size() + 1) > slots_.size()) grow();
        text_.insert(text_.end(), name.begin(), name.end());
        ends_.push_back(text_.size());
        place({hash, int32_t(size() - 1)});
        return int32_t(size() - 1);
    }

    std::string_view operator[](size_t column) const {
        const size_t start = column ? ends_[column - 1] : 0;
        return {text_.data() + start, ends_[column] - start};
    }

    size_t size() const { return ends_.size(); }
    void clear() {
        if (ends_.empty()) return;
        text_.clear();
        ends_.clear();
        slots_.assign(slots_.size(), {0, -1});
    }

    mutable std::shared_mutex lock;  // held by whoever uses a table that others extend

 private:
    struct Slot {
        uint32_t hash;
        int32_t column;
    };
    size_t mask() const { return slots_.size() - 1; }
    void place(Slot slot) {
        size_t at = slot.hash & mask();
        while (slots_[at].column >= 0) at = (at + 1) & mask();
        slots_[at] = slot;
    }
    void grow() {
        std::vector<Slot> old(2 * slots_.size(), {0, -1});
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.column >= 0) place(slot);
    }

    std::vector<char> text_;
    std::vector<size_t> ends_;
    std::vector<Slot> slots_;
};

}  // namespace onepass
