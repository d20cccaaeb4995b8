// Feeds the text parsers damaged and random lines under AddressSanitizer and UndefinedBehaviorSanitizer.
//
// fuzz_parsers [executions] [seed]. A deterministic mutator: the same numbers, the same inputs. Checked of every block:
// rows fit together, indices are inside, values are finite, a block parsed line by line gives the same rows, or read
// from a file in small pieces, and so do features read one by one instead of many at a time, with this processor's
// registers or without. The same text as CSV: records follow upon each other, and those that are found before its end
// is known are the same.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "parse/file.hpp"
#include "parse/records.hpp"

using namespace onepass;

static const char* const seeds[] = {"1 2 0.5 'tag|a x:2 y |b:3 x y:0.5\n-1 |a x:abc y:1e3\n| :0.5 :0.25 x\n",
                                    "tag| a:xyz:3 b|c d:+.5e-3\r\n\n||\n",
                                    "1 | a:1 a:2 a:-0.00001 b:123456789012345678901234567890\n",
                                    "|\xc3\xa9 \xc3\xbc:3 \xe2\x82\xac\n",
                                    "1 1:2 3:4.5 # hi\n-1 qid:3 2:1e-9 2:1e300\n+1\n",
                                    "0.5 7:0.12345678 8:-1 2147483646:1\n\n#\n",
                                    "1 |n:1e300 a:1e300 b\n1 | a:nan b:inf c:1e999\nabc | x\n",
                                    "1 |w 12:0.5 7:-3 100:.25 5:1. 00012:0 99999999:12345678 |v 1:-.5\n",
                                    "-1 | alpha beta gamma123 4you 17 delta \n1 |x^y 5 a^7 b:2\n",
                                    "1 |w 1:0.5 22:-3 333:.25 4444:1. 55555:0.12345 6:-.5 7:8 8:1.5 9:12345678 10:-1\n",
                                    "-1 |ns the of and a to in is you that it he was for on are with as his they be\n",
                                    "1 | averyveryverylongnameofmorethanthirtytwoletters b:1 c:2.5 d:-0 e:00000001\n",
                                    "a,\"b\nc\",\"d\"\"\"\r\n\"e,1\rf\"g,\"h\"i,\"\"\n\n",
                                    "1,3,5 2 'tag|a x:2\n2,2 | x\n, | x\n1,3 1:2 qid:4 3:5\n 1:2\n1,2,\n"};
static const char* const pieces[] = {" ",  ":",     "|",    "\n",   "\t", "'",     "#",     "qid:",
                                     "1e", "1e308", "-",    "+",    ".",  "nan",   "\r\n",  "99999999999999999999",
                                     "0",  "\0",    "\xff", "\xc3", "a",  "1:2:3", "|a:2 ", ",",
                                     "\"", ",\"",   "\r"};

static std::FILE* const file = std::tmpfile();
static uint64_t executions = 0, rows_seen = 0, bad_seen = 0;

[[noreturn]] static void fail(const char* what, const std::string& text) {
    std::fprintf(stderr, "%s after %llu executions; the input was\n%s\n", what, (unsigned long long)executions,
                 text.c_str());
    std::abort();
}

// As the user sees them: those that are listed apart among ones.
static std::vector<double> values_of(const Rows& rows, const std::string& text) {
    const double* const stored = rows.value.data();
    if (rows.value.size() > 0) return {stored, stored + rows.value.size()};
    std::vector<double> values(rows.index.size(), 1.0);
    for (size_t i = 0; i < rows.others.size(); ++i) {
        const ValueAt& other = rows.others.data()[i];
        if (other.at < 0 || size_t(other.at) >= values.size()) fail("a value has no feature", text);
        values[size_t(other.at)] = other.value;
    }
    return values;
}

static void check(const Rows& rows, int32_t columns, bool sets, const std::string& text) {
    if (rows.starts.size() != rows.rows() + 1 || size_t(rows.starts.data()[rows.rows()]) != rows.index.size() ||
        (rows.value.size() != 0 && (rows.value.size() != rows.index.size() || rows.others.size() != 0)))
        fail("the arrays do not fit together", text);
    for (size_t i = 0; i < rows.index.size(); ++i)
        if (rows.index.data()[i] < 0 || rows.index.data()[i] >= columns) fail("an index is wrong", text);
    for (const double value : values_of(rows, text))
        if (!std::isfinite(value)) fail("a value is wrong", text);
    double members = 0.0;
    for (size_t i = 0; sets && i < rows.rows(); ++i)
        members += std::isnan(rows.label.data()[i]) ? 0.0 : rows.label.data()[i];
    if (double(rows.members.size()) != members) fail("the label sets do not fit together", text);
}

static void same(const Rows& a, const Rows& b, const std::string& text) {
    bool same = a.rows() == b.rows() && a.index.size() == b.index.size() && a.bad.size() == b.bad.size() &&
                values_of(a, text) == values_of(b, text);
    for (size_t i = 0; same && i < a.index.size(); ++i) same = a.index.data()[i] == b.index.data()[i];
    if (!same) fail("read another way it is something else", text);
}

// The buffer is exactly as long as promised, so that a read past the padding is seen.
static void parse(const std::string& text, LineParser line, const ParseOptions& options, Rows& rows) {
    const std::unique_ptr<char[]> buffer(new char[text.size() + padding]);
    std::memcpy(buffer.get(), text.data(), text.size());
    std::memset(buffer.get() + text.size(), '7', padding);
    parse_block(buffer.get(), text.size(), line, options, rows);
}

static void execute(const std::string& text, LineParser line, int mode) {
    ++executions;
    Names names, again;
    ParseOptions options;
    options.keep_going = true;
    options.hash_bits = mode == 0 ? 10 : -1;
    options.sets = executions % 3 == 0;
    if (mode == 0 ? executions % 2 == 0 : mode == 1 && line == parse_vw) options.names = &names;
    if (mode == 1) options.base = 1;
    if (mode == 2) {
        if (line == parse_vw) options.hash_bits = 30;
        else options.base = 0;
    }
    // Products with everything that has a name, and runs of words.
    static const Expansion expansion{{{{Term::any, ""}, {Term::initial, "a"}}, {{Term::named, "x"}, {Term::any, ""}}},
                                     3};
    if (mode >= 3 && line == parse_vw) {
        options.expansion = &expansion;
        if (mode == 3) options.hash_bits = 12;
        if (mode == 4 || executions % 2) options.names = &names;
    }
    Rows rows;
    parse(text, line, options, rows);
    rows.settle(names);
    const int32_t columns = options.hash_bits >= 0 ? 1 << options.hash_bits : rows.columns;
    check(rows, columns, options.sets, text);
    rows_seen += rows.rows();
    bad_seen += rows.bad.size();
    if (line == parse_vw && options.hash_bits >= 0 && !options.names && !options.expansion) {
        Names kept;  // names that are wanted are read one by one
        options.names = &kept;
        Rows singly;
        parse(text, line, options, singly);
        options.names = nullptr;
        same(rows, singly, text);
        use_packs(false);  // many at a time, as on any processor
        Rows anywhere;
        parse(text, line, options, anywhere);
        use_packs(true);
        same(rows, anywhere, text);
    }
    if (executions % 16) return;
    if (options.names) options.names = &again;
    Rows one_by_one;
    for (size_t from = 0; from < text.size();) {
        const size_t end = text.find('\n', from) + 1;
        parse(text.substr(from, end - from), line, options, one_by_one);
        from = end;
    }
    one_by_one.settle(again);
    same(rows, one_by_one, text);
    std::rewind(file);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fflush(file);
    Names of_file;
    if (options.names) options.names = &of_file;
    Rows in_pieces;
    TextFile(fileno(file), "fuzz").parse(0, text.size(), line, options, in_pieces, 1 + executions % 61);
    in_pieces.settle(of_file);
    same(rows, in_pieces, text);
}

static std::vector<CsvRecord> records_of(const std::string& text, CsvDialect dialect, bool whole) {
    const std::unique_ptr<char[]> exact(new char[text.size()]);  // so that a read past the end is seen
    std::memcpy(exact.get(), text.data(), text.size());
    CsvRecords reader({exact.get(), text.size()}, dialect, whole);
    std::vector<CsvRecord> records;
    for (CsvRecord record; reader.next(record) == RecordFound::record;) records.push_back(record);
    return records;
}

static void execute_csv(const std::string& text, size_t longest, size_t cut) {
    const CsvDialect dialect{',', longest};
    const std::vector<CsvRecord> records = records_of(text, dialect, true);
    size_t at = 0, lines = 0;
    for (const CsvRecord& record : records) {
        if (record.begin != at || record.end < at || record.next <= at || record.next > text.size())
            fail("a record is at a wrong place", text);
        if ((record.size() > longest) != (record.kind == RecordKind::too_long)) fail("a record is too long", text);
        at = record.next;
        lines += record.lines;
    }
    if (at != text.size() || lines != count_line_ends(text)) fail("a record is missing", text);
    const std::vector<CsvRecord> before = records_of(text.substr(0, cut), dialect, false);
    if (before.size() > records.size()) fail("there are more records before than after", text);
    for (size_t i = 0; i < before.size(); ++i)
        if (before[i].next != records[i].next || before[i].kind != records[i].kind) fail("a record changed", text);
}

int main(int count, char** given) {
    const uint64_t most = count > 1 ? std::strtoull(given[1], nullptr, 10) : 200000;
    std::mt19937_64 random(count > 2 ? std::strtoull(given[2], nullptr, 10) : 1);
    auto below = [&](size_t n) { return size_t(random() % n); };
    std::vector<std::string> corpus(std::begin(seeds), std::end(seeds));
    while (executions < most) {
        std::string text = corpus[below(corpus.size())];
        for (size_t changes = below(6); changes-- > 0;) {
            const size_t at = below(text.size() + 1);
            switch (below(5)) {
                case 0: text.insert(at, pieces[below(std::size(pieces))]); break;
                case 1: text.insert(at, 1, char(random())); break;
                case 2: text.erase(at, below(8)); break;
                case 3:
                    if (at < text.size()) text[at] = char(text[at] ^ (1 << below(8)));
                    break;
                default: {
                    const std::string& other = corpus[below(corpus.size())];
                    text.insert(at, other.substr(below(other.size()), below(40)));
                }
            }
        }
        if (text.size() > 600) text.resize(600);
        if (text.empty() || text.back() != '\n') text += '\n';
        if (below(50) == 0) {  // grow on what was found, without bound on the strangeness but on the size
            if (corpus.size() < 400) corpus.push_back(text);
            else corpus[std::size(seeds) + below(corpus.size() - std::size(seeds))] = text;
        }
        execute_csv(text, below(3) ? 1000 : below(40), below(text.size()));
        execute(text, below(2) ? parse_vw : parse_svmlight, int(below(5)));
    }
    std::printf("%llu executions: %llu rows, %llu bad lines\n", (unsigned long long)executions,
                (unsigned long long)rows_seen, (unsigned long long)bad_seen);
    if (rows_seen == 0 || bad_seen == 0) return 1;
}
