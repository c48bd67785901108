// SPDX-License-Identifier: Apache-2.0
#include "berth/file/npy.h"
#include "file/bad_files.h"
#include "file/file_support.h"

namespace berth::testing {
namespace {

using enum ErrorCode;

// One member "x.npy"; each field can have a wrong value.
struct Archive {
  std::string name = "x.npy";
  std::string local_name = "x.npy";
  std::string member = good_npy();
  std::uint64_t flags = 0;
  std::uint64_t method = 0;
  std::uint64_t local_method = 0;
  std::uint64_t packed = good_npy().size();
  std::uint64_t bytes = good_npy().size();
  std::uint64_t local_offset = 0;
  std::uint64_t rows = 1;
  std::uint64_t directory_bytes = 0;  // added to the right value
  std::uint64_t directory_offset = 0;
  std::uint64_t part = 0;
  std::uint64_t row_mark = 0x02014b50;
  std::uint64_t local_mark = 0x04034b50;
  std::string extra = {};
  std::string large_end = {};  // before the end of the directory
  int times = 1;               // how often the row is repeated
  std::string behind = {};

  std::string make() const {
    std::string out = little(local_mark, 4) + little(20, 2) + little(flags, 2) + little(local_method, 2) + std::string(8, '\0') +
                      little(packed, 4) + little(bytes, 4) + little(local_name.size(), 2) + little(0, 2) + local_name + member;
    const std::string row = little(row_mark, 4) + little(20, 2) + little(20, 2) + little(flags, 2) + little(method, 2) +
                            std::string(8, '\0') + little(packed, 4) + little(bytes, 4) + little(name.size(), 2) + little(extra.size(), 2) +
                            std::string(10, '\0') + little(local_offset, 4) + name + extra;
    std::string directory;
    for (int i = 0; i < times; ++i) directory += row;
    const std::size_t at = out.size();
    out += directory + large_end;
    return out + little(0x06054b50, 4) + little(part, 2) + little(0, 2) + little(rows, 2) + little(rows, 2) +
           little(directory.size() + directory_bytes, 4) + little(at + directory_offset, 4) + little(0, 2) + behind;
  }
};

// Two members. The array of the first, and so the member, claims `more` bytes than there are before the second.
std::string pair_of_members(std::uint64_t more) {
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(10 + more) + ",)}\n";
  const std::string first = "\x93NUMPY\x01" + std::string(1, '\0') + little(text.size(), 2) + text + std::string(10, '\x01');
  std::string members;
  std::string rows;
  for (const bool is_first : {true, false}) {
    const std::string name = is_first ? "a.npy" : "b.npy";
    const std::string& bytes = is_first ? first : good_npy();
    const std::uint64_t size = bytes.size() + (is_first ? more : 0);
    const std::string sizes = std::string(8, '\0') + little(size, 4) + little(size, 4) + little(name.size(), 2) + little(0, 2);
    const std::string start = little(20, 2) + little(0, 4);
    rows += little(0x02014b50, 4) + little(20, 2) + start + sizes + std::string(10, '\0') + little(members.size(), 4) + name;
    members += little(0x04034b50, 4) + start + sizes + name + bytes;
  }
  return members + rows + little(0x06054b50, 4) + little(0, 4) + little(2, 2) + little(2, 2) + little(rows.size(), 4) +
         little(members.size(), 4) + little(0, 2);
}

// The Zip64 end of a directory, and its locator.
std::string large_end(std::uint64_t at, std::uint64_t directory_bytes) {
  constexpr std::uint64_t kRow = 46 + 5;
  return little(0x06064b50, 4) + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(1, 8) + little(1, 8) +
         little(directory_bytes, 8) + little(at, 8) + little(0x07064b50, 4) + little(0, 4) + little(at + kRow, 8) + little(1, 4);
}
// Archives with two end records: readers from the back and from the front, and those that look for the last mark,
// differ in which they take.
std::vector<std::string> two_ends() {
  constexpr std::size_t kEnd = 22;
  const std::string whole = good_npz();
  const std::string end = whole.substr(whole.size() - kEnd);
  const auto with_comment = [&](const std::string& comment) {
    return whole.substr(0, whole.size() - 2) + little(comment.size(), 2) + comment;
  };
  return {with_comment(end), with_comment("hello" + end + "x"), with_comment(end.substr(0, 4)), with_comment(end + end)};
}
const std::uint64_t kDirectoryOffset = 30 + 5 + good_npy().size();  // of an archive with one member

}  // namespace

std::string good_npz() { return Archive().make(); }

std::vector<std::string> all_good_npz() {
  const std::uint64_t bytes = good_npy().size();
  const std::string sizes = little(1, 2) + little(16, 2) + little(bytes, 8) + little(bytes, 8);
  std::vector<std::string> all{good_npz()};
  all.push_back(Archive{.packed = 0xFFFFFFFF, .bytes = 0xFFFFFFFF, .extra = little(0xCAFE, 2) + little(3, 2) + "abc" + sizes}.make());
  all.push_back(Archive{.rows = 0xFFFF, .large_end = large_end(kDirectoryOffset, 51)}.make());
  all.push_back(pair_of_members(0));
  std::string with_comment = good_npz();
  with_comment[with_comment.size() - 2] = 5;
  all.push_back(with_comment + "hello");
  return all;
}

std::vector<BadFile> bad_npz() {
  std::vector<BadFile> all;
  const auto add = [&](std::string what, const Archive& archive, std::string rule, ErrorCode code = format_error, std::string name = {}) {
    all.push_back({"F21", std::move(what), archive.make(), code, std::move(rule), std::move(name)});
  };
  const std::string whole = good_npz();
  for (const std::size_t bytes : {0U, 1U, 21U})
    all.push_back({"F21", std::to_string(bytes) + " bytes", whole.substr(0, bytes), format_error, "too_small"});
  for (const std::size_t cut : {1U, 21U, 22U, 100U})
    all.push_back({"F22", "the end is cut", whole.substr(0, whole.size() - cut), file_truncated, "no_directory"});
  add("bytes behind the end", {.behind = "x"}, "no_directory", file_truncated);
  add("compressed", {.method = 8}, "compressed", unsupported, "x.npy");
  add("compressed by its header alone", {.local_method = 8}, "local_header", format_error, "x.npy");
  add("encrypted", {.flags = 1}, "encrypted", unsupported, "x.npy");
  add("strongly encrypted", {.flags = 0x40}, "encrypted", unsupported, "x.npy");
  add("a difference to other bytes", {.flags = 0x20}, "compressed", unsupported, "x.npy");
  add("a part of several", {.part = 1}, "several_parts", unsupported);
  add("two sizes", {.packed = 5}, "size_mismatch", size_mismatch, "x.npy");
  add("another name in its header", {.local_name = "y.npy"}, "local_header", format_error, "x.npy");
  add("a longer name in its header", {.local_name = "xx.npy"}, "local_header", format_error, "x.npy");
  add("no header there", {.local_mark = 0}, "local_header", format_error, "x.npy");
  add("a row that is none", {.row_mark = 0}, "directory");
  add("one row too few", {.rows = 2}, "row_count");
  add("one row too many", {.rows = 0}, "row_count");
  add("a directory too long", {.directory_bytes = 1}, "bounds");
  add("a directory too short", {.directory_bytes = static_cast<std::uint64_t>(-1)}, "bounds");
  add("a directory one byte off", {.directory_offset = static_cast<std::uint64_t>(-1)}, "directory");
  add("bytes between the directory and its end", {.large_end = "x"}, "hole");
  add("a directory elsewhere", {.directory_offset = 1'000'000}, "bounds");
  add("a member elsewhere", {.local_offset = 1'000'000}, "bounds", format_error, "x.npy");
  add("a member one byte off", {.local_offset = 1}, "local_header", format_error, "x.npy");
  add("a member that reaches into the directory", {.packed = good_npy().size() + 1, .bytes = good_npy().size() + 1}, "bounds",
      file_truncated, "x.npy");
  add("a member of 4 GiB", {.packed = 0xFFFFFFFE, .bytes = 0xFFFFFFFE}, "bounds", file_truncated, "x.npy");
  add("a member twice", {.rows = 2, .times = 2}, "duplicate_key", format_error, "x.npy");
  add("a name that is not UTF-8", {.name = "\xff.npy", .local_name = "\xff.npy"}, "utf8");
  add("a name with a zero byte", {.name = std::string("a\0.npy", 6), .local_name = std::string("a\0.npy", 6)}, "utf8");
  add("something that is no array", {.name = "x.txt", .local_name = "x.txt"}, "not_npy", format_error, "x.txt");
  add("an array that is none", {.member = std::string(good_npy().size(), 'x')}, "magic", format_error, "x");
  add("a size elsewhere that is not there", {.packed = 0xFFFFFFFF, .bytes = 0xFFFFFFFF}, "bounds", format_error, "x.npy");
  add("a size elsewhere that is cut", {.packed = 0xFFFFFFFF, .bytes = 0xFFFFFFFF, .extra = little(1, 2) + little(8, 2) + little(152, 8)},
      "bounds", format_error, "x.npy");
  add("an extra field past its end", {.bytes = 0xFFFFFFFF, .extra = little(1, 2) + little(99, 2)}, "bounds", format_error, "x.npy");
  add("a larger end that is not there", {.rows = 0xFFFF}, "bounds");
  add("a larger end that is no such thing",
      {.rows = 0xFFFF, .large_end = std::string(56, '\0') + little(0x07064b50, 4) + little(0, 4) + little(0, 8) + little(1, 4)}, "bounds");
  add("a directory of more than 100 MB", {.rows = 0xFFFF, .large_end = large_end(kDirectoryOffset, 100'000'001)}, "header_limit",
      limit_exceeded);
  for (const std::uint64_t more : {1U, 30U, 100U, 1000U}) {
    const bool past = more == 1000;
    all.push_back({"F21", "members that share bytes", pair_of_members(more), past ? file_truncated : format_error,
                   past ? "bounds" : "overlap", past ? "a.npy" : "b.npy"});
  }
  for (const std::string& both : two_ends()) all.push_back({"F21", "two ends of a directory", both, format_error, "second_end"});
  add("a larger end elsewhere", {.rows = 0xFFFF, .large_end = little(0x07064b50, 4) + little(0, 4) + little(~0ULL, 8) + little(1, 4)},
      "bounds");
  return all;
}

}  // namespace berth::testing
