// Records of a cache with bytes changed at random under checksums that fit: nothing beyond the file is read, and what
// is taken for rows is well formed. fuzz_cache EXECUTIONS
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "parse/cache_records.hpp"

using namespace onepass;

static constexpr size_t front = 24, shape = 32;

static void append(std::vector<char>& file, const void* bytes, size_t size) {
    file.insert(file.end(), static_cast<const char*>(bytes), static_cast<const char*>(bytes) + size);
    file.resize((file.size() + 7) / 8 * 8);
}

static void seal(char* record, size_t size) {
    const uint64_t sum = checksum(record + front, size - front);
    std::memcpy(record + 16, &sum, 8);
}

static std::vector<char> make(bool wide) {
    const int32_t starts[] = {0, 2, 2, 5}, index[] = {3, 1, 0, 7, 2};
    const double values[] = {1.0, -2.5, 3.0, 0.5, 1e9};
    const float narrow[] = {1.0f, -2.5f, 3.0f, 0.5f, 1e9f};
    const uint64_t lengths[] = {2, uint64_t(16 + 24 + (wide ? 40 : 24)), 0}, sizes[] = {4, 5, wide ? 8u : 4u, 8};
    std::vector<char> file;
    append(file, lengths, sizeof lengths);
    append(file, sizes, sizeof sizes);
    append(file, "{}", 2);
    append(file, starts, sizeof starts);
    append(file, index, sizeof index);
    if (wide) append(file, values, sizeof values);
    else append(file, narrow, sizeof narrow);
    seal(file.data(), file.size());
    return file;
}

static bool sound(const char* file, const Record& record) {
    const char* at = file + record.head + (record.head_length + 7) / 8 * 8;
    std::vector<int32_t> starts(record.starts), index(record.nonzeros);
    std::memcpy(starts.data(), at, 4 * starts.size());
    at += (4 * starts.size() + 7) / 8 * 8;
    if (!index.empty()) std::memcpy(index.data(), at, 4 * index.size());
    at += (4 * index.size() + 7) / 8 * 8;
    bool good = starts[0] >= 0 && size_t(starts.back()) <= index.size();
    for (size_t i = 1; i < starts.size(); ++i) good &= starts[i - 1] <= starts[i];
    for (int32_t each : index) good &= each >= 0 && uint64_t(each) < record.width;
    for (size_t i = 0; i < index.size(); ++i) {
        double wide;
        float narrow;
        if (record.value_bytes == 8) std::memcpy(&wide, at + 8 * i, 8);
        else std::memcpy(&narrow, at + 4 * i, 4), wide = narrow;
        good &= std::isfinite(wide);
    }
    return good;
}

int main(int argc, char** argv) {
    const long executions = argc > 1 ? std::atol(argv[1]) : 200'000;
    std::mt19937_64 random(1);
    long accepted = 0;
    for (long i = 0; i < executions; ++i) {
        const std::vector<char> whole = make(i & 1);
        const size_t size = random() % 8 ? whole.size() : random() % (whole.size() + 1);
        std::unique_ptr<char[]> file(
            new char[size ? size : 1]);  // of the exact size, so that a read past the end is found
        std::memcpy(file.get(), whole.data(), size);
        for (size_t changes = random() % 4; changes-- > 0 && size;)
            file[random() % size] = char(random() % 3 ? random() : (random() % 2 ? 0x7F : 0xFF));
        if (size == whole.size()) seal(file.get(), size);
        const Record record = check_record(file.get(), size, 0);
        if (record.kind != Record::Kind::rows) continue;
        ++accepted;
        if (record.end > size || !sound(file.get(), record)) {
            std::printf("execution %ld: rows that are not well formed were taken\n", i);
            return 1;
        }
    }
    if (accepted < executions / 10) {
        std::printf("only %ld of %ld records were taken: nothing was tested\n", accepted, executions);
        return 1;
    }
    std::printf("%ld records, %ld taken for rows\n", executions, accepted);
}
