// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/random.h"
#include "berth/base/error.h"
#include "file/bad_files.h"
#include "file/file_support.h"
#include "file/numpy/npy_header.h"
#include "file/numpy/zip.h"
#include "file/safetensors/json_text.h"
#include "file/safetensors/safetensors_header.h"
#include "file/safetensors/safetensors_index.h"
#include "support/scale.h"

// Damaged files: whatever the input, the result is an Error, or offsets and sizes that are inside the file and
// agree with a slow, obvious parser. The corpus is the table of bad files and the good ones beside them. A
// parser that is given a wrong file size stands for one with a bounds bug, which must be found.
namespace berth::testing {

using namespace internal;
namespace {

using namespace internal::file;

// What is wrong with the parser's result; nothing when it is right, or the input was rejected.
using Finding = std::optional<std::string>;
using Judge = std::function<Finding(const std::string& bytes)>;

// ---- Judges. `more` is the number of bytes by which the parser is told too large a file size.

Finding judge_safetensors(const std::string& bytes, std::uint64_t more, bool lax) {
  const std::uint64_t told = bytes.size() + more;
  const std::uint64_t length = safetensors_header_bytes(std::string_view(bytes).substr(0, 8), told, "fuzz");
  if (length > bytes.size() - std::min<std::size_t>(8, bytes.size())) return "a header past the file";
  const std::string json = bytes.substr(8, length);
  const SafetensorsHeader header = parse_safetensors(JsonText(std::string_view(json)), told, {.lax = lax}, "fuzz");
  const nlohmann::json read = nlohmann::json::parse(json, nullptr, false);
  if (read.is_discarded()) return "JSON that another parser refuses";
  if (read.size() != header.entries.size() + read.contains("__metadata__")) return "another number of tensors";
  std::uint64_t at = 8 + length;
  for (const TensorEntry& entry : header.entries) {
    if (entry.file_offset != at || entry.size_bytes > bytes.size() - at) return "a tensor past the file, or not behind the one before";
    at += entry.size_bytes;
    const nlohmann::json& said = read[entry.name];
    if (said["data_offsets"][0] != entry.file_offset - 8 - length || said["shape"].size() != entry.shape.rank())
      return "another place or rank";
    if (entry.dtype && entry.shape.try_size_bytes(*entry.dtype) != entry.size_bytes) return "another size than the shape's";
  }
  return at == bytes.size() ? Finding() : "bytes of no tensor";
}

Finding judge_index(const std::string& bytes, bool lax) {
  const SafetensorsIndex index = parse_safetensors_index(JsonText(std::string_view(bytes)), {.lax = lax}, "fuzz");
  const nlohmann::json read = nlohmann::json::parse(bytes, nullptr, false);
  if (read.is_discarded()) return "JSON that another parser refuses";
  if (read["weight_map"].size() != index.rows.size()) return "another number of tensors";
  for (const SafetensorsIndex::Row& row : index.rows) {
    const std::string& shard = index.shards[row.shard];
    if (read["weight_map"][row.name] != shard || index.find(row.name) != &row) return "another file";
    const std::filesystem::path path(shard);
    if (path.is_absolute() || path.lexically_normal() != path || path.begin()->string() == ".." || shard.empty())
      return "a path that leads out";
  }
  return std::nullopt;
}

Finding judge_npy(const std::string& bytes, std::uint64_t more) {
  const TensorEntry entry = parse_npy(std::string_view(bytes).substr(0, kMostNpyBytes), {.path = "fuzz", .bytes = bytes.size() + more});
  if (entry.file_offset > bytes.size() || entry.size_bytes != bytes.size() - entry.file_offset)
    return "elements past the file, or not all of it";
  if (entry.dtype && entry.shape.try_size_bytes(*entry.dtype) != entry.size_bytes) return "another size than the shape's";
  return std::nullopt;
}

// The array in it, as open_npz reads it.
Finding judge_member(const std::string& bytes, const ZipMember& member) {
  const std::string_view inside = std::string_view(bytes).substr(member.offset, member.bytes);
  const TensorEntry entry =
      parse_npy(inside.substr(0, kMostNpyBytes), {.path = "fuzz", .offset = member.offset, .bytes = member.bytes, .name = member.name});
  const bool is_inside = entry.file_offset >= member.offset && entry.file_offset - member.offset <= member.bytes;
  if (!is_inside || entry.size_bytes != member.bytes - (entry.file_offset - member.offset)) return "elements outside the member";
  return std::nullopt;
}

Finding judge_npz(const std::string& bytes, std::uint64_t more) {
  bool outside = false;
  const ReadAt read = [&](std::uint64_t offset, std::span<std::byte> target) {
    const bool inside = offset <= bytes.size() && target.size() <= bytes.size() - offset;
    outside = outside || !inside;
    if (inside) std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()) + offset, target.size(), target.begin());
  };
  try {
    std::uint64_t end = 0;
    for (const ZipMember& member : parse_zip(read, bytes.size() + more, "fuzz")) {
      if (member.offset < end || member.offset > bytes.size() || member.bytes > bytes.size() - member.offset)
        return "a member past the file";
      end = member.offset + member.bytes;
      if (const Finding found = judge_member(bytes, member)) return found;
    }
  } catch (const Error&) {
    if (outside) return "a read past the file";
    throw;
  }
  return outside ? Finding("a read past the file") : std::nullopt;
}

// ---- Damage.

std::string word(Random& random) {
  constexpr const char* kWords[] = {"0",
                                    "1",
                                    "-1",
                                    "4",
                                    "8",
                                    "18446744073709551615",
                                    "9223372036854775808",
                                    "1e3",
                                    "1.0",
                                    "null",
                                    "true",
                                    "{}",
                                    "[]",
                                    "\"\"",
                                    "\"U8\"",
                                    "\"F64\"",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    ",",
                                    ":",
                                    "\\u0000",
                                    "\\ud800",
                                    "..",
                                    "/",
                                    "\"",
                                    "'",
                                    "(",
                                    ")",
                                    "'|O'",
                                    "(1,)",
                                    "dtype",
                                    "shape",
                                    "data_offsets",
                                    "__metadata__",
                                    "\xff"};
  return kWords[random.below(std::size(kWords))];
}

std::string damaged(Random& random, std::string bytes) {
  const std::uint64_t changes = 1 + random.below(3);
  for (std::uint64_t i = 0; i < changes; ++i) {
    const auto at = static_cast<std::size_t>(random.below(bytes.size() + 1));
    switch (random.below(7)) {
      case 0: bytes.insert(at, 1, static_cast<char>(random.below(256))); break;
      case 1: bytes.erase(at, 1 + random.below(4)); break;
      case 2:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random.below(256));
        break;
      case 3: bytes.insert(at, word(random)); break;
      case 4:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] + (random.one_in(2) ? 1 : -1));
        break;
      case 5: bytes.resize(at); break;
      default: bytes.insert(at, bytes.substr(static_cast<std::size_t>(random.below(bytes.size() + 1)), 1 + random.below(20))); break;
    }
  }
  return bytes;
}

// Usually corrects the length in front: otherwise nothing after it would be parsed.
std::string with_length(Random& random, std::string bytes) {
  if (bytes.size() < 8 || random.one_in(4)) return bytes;
  const std::size_t end = bytes.rfind("}}", bytes.size());
  const std::size_t length = end == std::string::npos ? bytes.size() - 8 : end + 2 - std::min<std::size_t>(8, end + 2);
  return little(length, 8) + bytes.substr(8);
}

using Damage = std::function<std::string(Random&, const std::string&)>;

// The seeds of the mutations: large files take long, and find little more.
std::vector<std::string> corpus(const std::vector<BadFile>& bad, const std::vector<std::string>& good) {
  std::vector<std::string> seeds;
  for (const BadFile& file : bad) {
    if (file.bytes.size() < 2000) seeds.push_back(file.bytes);
  }
  const std::size_t bad_ones = seeds.size();
  // A fifth of all.
  for (std::size_t i = 0; i < std::max(bad_ones / 4, good.size()); ++i) seeds.push_back(good[i % good.size()]);
  return seeds;
}

Finding judged(const Judge& judge, const std::string& bytes, bool& accepted) {
  try {
    Finding found = judge(bytes);
    accepted = true;
    return found;
  } catch (const Error& error) {
    return std::string_view(error.what()).empty() ? Finding("an error without words") : std::nullopt;
  }
}

void survives(const std::vector<std::string>& seeds, const Damage& damage, const Judge& judge) {
  Random random(seed());
  const std::uint64_t runs = scaled(1'000'000, 2000);
  std::uint64_t accepted = 0;
  bool taken = false;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::string bytes = damage(random, seeds[random.below(seeds.size())]);
    taken = false;
    ASSERT_EQ(judged(judge, bytes, taken), std::nullopt) << "run " << i << ": " << bytes;
    accepted += taken ? 1 : 0;
  }
  did(std::to_string(runs) + " inputs, " + std::to_string(accepted) + " accepted");
}

bool is_found(const std::vector<std::string>& seeds, const Damage& damage, const Judge& judge) {
  Random random(seed());
  bool taken = false;
  for (int i = 0; i < 100'000; ++i) {
    if (judged(judge, damage(random, seeds[random.below(seeds.size())]), taken)) return true;
  }
  return false;
}

const Damage kPlain = [](Random& random, const std::string& bytes) { return damaged(random, bytes); };
const Damage kWithLength = [](Random& random, const std::string& bytes) { return with_length(random, damaged(random, bytes)); };

// Each file of the corpus unmodified, of every size; the good ones are accepted.
void all_judged(const std::vector<BadFile>& bad, const std::vector<std::string>& good, const Judge& judge) {
  bool taken = false;
  for (const BadFile& file : bad) EXPECT_EQ(judged(judge, file.bytes, taken), std::nullopt) << file.what;
  for (const std::string& bytes : good) {
    taken = false;
    EXPECT_EQ(judged(judge, bytes, taken), std::nullopt) << bytes;
    EXPECT_TRUE(taken) << bytes;
  }
}

TEST(FileCorpus, Safetensors) {
  for (const bool lax : {false, true})
    all_judged(bad_safetensors(), all_good_safetensors(), [&](const std::string& bytes) { return judge_safetensors(bytes, 0, lax); });
}
TEST(FileCorpus, Indices) {
  for (const bool lax : {false, true})
    all_judged(bad_indices(), all_good_indices(), [&](const std::string& bytes) { return judge_index(bytes, lax); });
}
TEST(FileCorpus, Npy) {
  all_judged(bad_npy(), all_good_npy(), [](const std::string& bytes) { return judge_npy(bytes, 0); });
}
TEST(FileCorpus, Npz) {
  all_judged(bad_npz(), all_good_npz(), [](const std::string& bytes) { return judge_npz(bytes, 0); });
}

TEST(FileFuzz, Safetensors) {
  survives(corpus(bad_safetensors(), all_good_safetensors()), kWithLength,
           [](const std::string& bytes) { return judge_safetensors(bytes, 0, false); });
}
TEST(FileFuzz, SafetensorsReadLax) {
  survives(corpus(bad_safetensors(), all_good_safetensors()), kWithLength,
           [](const std::string& bytes) { return judge_safetensors(bytes, 0, true); });
}
TEST(FileFuzz, Indices) {
  survives(corpus(bad_indices(), all_good_indices()), kPlain, [](const std::string& bytes) { return judge_index(bytes, false); });
}
TEST(FileFuzz, IndicesReadLax) {
  survives(corpus(bad_indices(), all_good_indices()), kPlain, [](const std::string& bytes) { return judge_index(bytes, true); });
}
TEST(FileFuzz, Npy) {
  survives(corpus(bad_npy(), all_good_npy()), kPlain, [](const std::string& bytes) { return judge_npy(bytes, 0); });
}
TEST(FileFuzz, Npz) {
  survives(corpus(bad_npz(), all_good_npz()), kPlain, [](const std::string& bytes) { return judge_npz(bytes, 0); });
}

// One byte too many is the smallest possible bounds error; eight is what a parser gets wrong that forgets the
// length in front.
TEST(FileFuzz, APlantedBoundsBugIsFound) {
  for (const std::uint64_t more : {1U, 8U}) {
    EXPECT_TRUE(is_found({good_safetensors()}, kWithLength, [&](const std::string& bytes) {
      return judge_safetensors(bytes, more, false);
    })) << more;
    EXPECT_TRUE(is_found({good_npy()}, kPlain, [&](const std::string& bytes) { return judge_npy(bytes, more); })) << more;
    EXPECT_TRUE(is_found({good_npz()}, kPlain, [&](const std::string& bytes) { return judge_npz(bytes, more); })) << more;
  }
}

}  // namespace
}  // namespace berth::testing
