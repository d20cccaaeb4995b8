// Feeds the text parsers damaged and random lines under AddressSanitizer and UndefinedBehaviorSanitizer.
//
// fuzz_parsers [executions] [seed]. The same numbers make the same inputs. Every block is checked: its arrays fit
// together, indices are in range, values are finite. The rows must be the same when the block is parsed line by line,
// or read from a file in small pieces, or feature by feature, or without this processor's wide registers. The same text
// is read as CSV: each record begins where the one before it ends, and the records that are found before the end of the
// text is known are the same.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "parse/csv_records.hpp"
#include "parse/text_file.hpp"

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
static std::vector<double> values_of(const ParsedRows& rows, const std::string& text) {
    const double* const stored = rows.value.data();
    if (rows.value.size() > 0) return {stored, stored + rows.value.size()};
    std::vector<double> values(rows.index.size(), 1.0);
    for (size_t i = 0; i < rows.not_ones.size(); ++i) {
        const ValueAt& other = rows.not_ones.data()[i];
        if (other.at < 0 || size_t(other.at) >= values.size()) fail("a value has no feature", text);
        values[size_t(other.at)] = other.value;
    }
    return values;
}

static void check(const ParsedRows& rows, int32_t columns, bool sets, const std::string& text) {
    if (rows.starts.size() != rows.rows() + 1 || size_t(rows.starts.data()[rows.rows()]) != rows.index.size() ||
        (rows.value.size() != 0 && (rows.value.size() != rows.index.size() || rows.not_ones.size() != 0)))
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

static void require_same(const ParsedRows& a, const ParsedRows& b, const std::string& text) {
    bool same = a.rows() == b.rows() && a.index.size() == b.index.size() && a.bad.size() == b.bad.size() &&
                values_of(a, text) == values_of(b, text);
    for (size_t i = 0; same && i < a.index.size(); ++i) same = a.index.data()[i] == b.index.data()[i];
    if (!same) fail("the rows differ when they are read another way", text);
}

// The buffer is exactly as long as promised, so that a read past the padding is seen.
static void parse(const std::string& text, LineParser line, const ParseOptions& options, ParsedRows& rows) {
    const std::unique_ptr<char[]> buffer(new char[text.size() + padding]);
    std::memcpy(buffer.get(), text.data(), text.size());
    std::memset(buffer.get() + text.size(), '7', padding);
    parse_block(buffer.get(), text.size(), line, options, rows);
}

// The options of a mode: hashes or names, of few or many bits, with products and runs of words.
static ParseOptions choose_options(LineParser line, int mode, Names& names) {
    static const FeatureExpansion expansion{
        {{{TermKind::any, ""}, {TermKind::initial, "a"}}, {{TermKind::named, "x"}, {TermKind::any, ""}}}, 3};
    const bool vw = line == parse_vw;
    ParseOptions options;
    options.keep_going = true;
    options.hash_bits = mode == 0 ? 10 : mode == 2 && vw ? 30 : mode == 3 && vw ? 12 : -1;
    options.sets = executions % 3 == 0;
    options.base = mode == 1;
    bool named = mode == 0 ? executions % 2 == 0 : mode == 1 && vw;
    if (mode >= 3 && vw) {
        options.expansion = &expansion;
        named = mode == 4 || executions % 2;
    }
    if (named) options.names = &names;
    return options;
}

// Names that are wanted are read one by one; packs are read many at a time, as are other processors' loops.
static void check_other_ways(const ParsedRows& rows, const std::string& text, LineParser line, ParseOptions options) {
    use_packs(false);
    ParsedRows unpacked;
    parse(text, line, options, unpacked);
    use_packs(true);
    require_same(rows, unpacked, text);
    Names names;
    options.names = &names;
    ParsedRows one_by_one;
    parse(text, line, options, one_by_one);
    require_same(rows, one_by_one, text);
}

static void check_lines(const ParsedRows& rows, const std::string& text, LineParser line, ParseOptions options) {
    Names names;
    if (options.names) options.names = &names;
    ParsedRows by_line;
    for (size_t from = 0; from < text.size();) {
        const size_t end = text.find('\n', from) + 1;
        parse(text.substr(from, end - from), line, options, by_line);
        from = end;
    }
    by_line.assign_columns(names);
    require_same(rows, by_line, text);
}

static void check_file(const ParsedRows& rows, const std::string& text, LineParser line, ParseOptions options) {
    std::rewind(file);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fflush(file);
    Names names;
    if (options.names) options.names = &names;
    ParsedRows in_pieces;
    TextFile(fileno(file), "fuzz").parse(0, text.size(), line, options, in_pieces, 1 + executions % 61);
    in_pieces.assign_columns(names);
    require_same(rows, in_pieces, text);
}

static void execute(const std::string& text, LineParser line, int mode) {
    ++executions;
    Names names;
    const ParseOptions options = choose_options(line, mode, names);
    ParsedRows rows;
    parse(text, line, options, rows);
    rows.assign_columns(names);
    const int32_t columns = options.hash_bits >= 0 ? 1 << options.hash_bits : rows.columns;
    check(rows, columns, options.sets, text);
    rows_seen += rows.rows();
    bad_seen += rows.bad.size();
    if (line == parse_vw && options.hash_bits >= 0 && !options.names && !options.expansion)
        check_other_ways(rows, text, line, options);
    if (executions % 16) return;
    check_lines(rows, text, line, options);
    check_file(rows, text, line, options);
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

// Damaged texts made of the seeds, and of some that were made before.
class Corpus {
 public:
    explicit Corpus(uint64_t seed) : random_(seed), texts_(std::begin(seeds), std::end(seeds)) {}

    size_t below(size_t n) { return size_t(random_() % n); }

    std::string next() {
        std::string text = texts_[below(texts_.size())];
        for (size_t changes = below(6); changes-- > 0;) damage(text);
        if (text.size() > 600) text.resize(600);
        if (text.empty() || text.back() != '\n') text += '\n';
        if (below(50) == 0) remember(text);
        return text;
    }

 private:
    void damage(std::string& text) {
        const size_t at = below(text.size() + 1);
        switch (below(5)) {
            case 0: text.insert(at, pieces[below(std::size(pieces))]); break;
            case 1: text.insert(at, 1, char(random_())); break;
            case 2: text.erase(at, below(8)); break;
            case 3:
                if (at < text.size()) text[at] = char(text[at] ^ (1 << below(8)));
                break;
            default: {
                const std::string& other = texts_[below(texts_.size())];
                text.insert(at, other.substr(below(other.size()), below(40)));
            }
        }
    }

    void remember(const std::string& text) {  // damage adds up; the number of texts is bounded
        if (texts_.size() < 400) texts_.push_back(text);
        else texts_[std::size(seeds) + below(texts_.size() - std::size(seeds))] = text;
    }

    std::mt19937_64 random_;
    std::vector<std::string> texts_;
};

int main(int count, char** given) {
    const uint64_t most = count > 1 ? std::strtoull(given[1], nullptr, 10) : 200000;
    Corpus corpus(count > 2 ? std::strtoull(given[2], nullptr, 10) : 1);
    while (executions < most) {
        const std::string text = corpus.next();
        execute_csv(text, corpus.below(3) ? 1000 : corpus.below(40), corpus.below(text.size()));
        execute(text, corpus.below(2) ? parse_vw : parse_svmlight, int(corpus.below(5)));
    }
    std::printf("%llu executions: %llu rows, %llu bad lines\n", (unsigned long long)executions,
                (unsigned long long)rows_seen, (unsigned long long)bad_seen);
    if (rows_seen == 0 || bad_seen == 0) return 1;
}
