// Feature names and their columns: a table that grows in the order of the stream while other threads read it.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "parse/hash.hpp"

namespace onepass {

// Held by every thread that adds or lists names, in any table, so that a fork can wait until no table is half changed.
inline std::mutex names_lock;

class Names {
 public:
    Names() { publish(64); }
    Names(const Names&) = delete;
    Names& operator=(const Names&) = delete;

    // The column of a name, or -1. The hash is that of the whole name. Needs no lock: a name that another thread is
    // adding at this moment may be missed, but a wrong column is never returned.
    int32_t find(std::string_view name, uint32_t hash, std::string_view prefix = {}) const {
        const Table* table = table_.load(std::memory_order_acquire);
        for (size_t at = hash & table->mask;; at = (at + 1) & table->mask) {
            const Entry* entry = table->slots[at].load(std::memory_order_acquire);
            if (!entry) return -1;
            if (entry->hash == hash && entry->is(prefix, name)) return entry->column;
        }
    }

    // Many names are found faster if all are prefetched before the first is looked up.
    void prefetch_slot(uint32_t hash) const {
        const Table* table = table_.load(std::memory_order_acquire);
        __builtin_prefetch(&table->slots[hash & table->mask]);
    }
    void prefetch_entry(uint32_t hash) const {
        const Table* table = table_.load(std::memory_order_acquire);
        __builtin_prefetch(table->slots[hash & table->mask].load(std::memory_order_acquire));
    }

    int32_t intern(std::string_view name, uint32_t hash) {
        std::lock_guard guard(names_lock);
        const int32_t known = find(name, hash);
        if (known >= 0) return known;
        Entry* entry = new (room(sizeof(Entry) + name.size())) Entry{hash, uint32_t(name.size()), int32_t(all_.size())};
        std::memcpy(entry->text(), name.data(), name.size());
        all_.push_back(entry);
        if (2 * all_.size() > tables_.back()->mask) publish(4 * (tables_.back()->mask + 1));
        else place(*tables_.back(), entry);
        return entry->column;
    }

    std::string_view operator[](size_t column) const {
        std::lock_guard guard(names_lock);
        return all_[column]->name();
    }

    size_t size() const {
        std::lock_guard guard(names_lock);
        return all_.size();
    }

 private:
    struct Entry {  // followed by its text
        uint32_t hash, length;
        int32_t column;
        char* text() { return reinterpret_cast<char*>(this + 1); }
        bool is(std::string_view prefix, std::string_view rest) const {
            const char* const text = reinterpret_cast<const char*>(this + 1);
            return length == prefix.size() + rest.size() &&
                   std::memcmp(text + prefix.size(), rest.data(), rest.size()) == 0 &&
                   (prefix.empty() || std::memcmp(text, prefix.data(), prefix.size()) == 0);
        }
        std::string_view name() const { return {reinterpret_cast<const char*>(this + 1), length}; }
    };
    struct Table {
        size_t mask;
        std::unique_ptr<std::atomic<const Entry*>[]> slots;
    };

    static void place(Table& table, const Entry* entry) {
        size_t at = entry->hash & table.mask;
        while (table.slots[at].load(std::memory_order_relaxed)) at = (at + 1) & table.mask;
        table.slots[at].store(entry, std::memory_order_release);
    }

    // A larger table. The old one is not freed, since another thread may be reading it.
    void publish(size_t size) {
        tables_.push_back(
            std::make_unique<Table>(Table{size - 1, std::make_unique<std::atomic<const Entry*>[]>(size)}));
        for (const Entry* entry : all_) place(*tables_.back(), entry);
        table_.store(tables_.back().get(), std::memory_order_release);
    }

    // Memory that never moves.
    char* room(size_t bytes) {
        bytes = (bytes + alignof(Entry) - 1) / alignof(Entry) * alignof(Entry);
        if (bytes > left_) {
            left_ = bytes > piece ? bytes : piece;
            pieces_.push_back(std::make_unique<char[]>(left_));
            next_ = pieces_.back().get();
        }
        char* here = next_;
        next_ += bytes;
        left_ -= bytes;
        return here;
    }

    static constexpr size_t piece = 1 << 14;
    std::atomic<const Table*> table_;
    std::vector<std::unique_ptr<Table>> tables_;
    std::vector<const Entry*> all_;
    std::vector<std::unique_ptr<char[]>> pieces_;
    char* next_ = nullptr;
    size_t left_ = 0;
};

}  // namespace onepass
