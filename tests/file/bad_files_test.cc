// SPDX-License-Identifier: Apache-2.0
#include "file/bad_files.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "file/file_support.h"
#include "support/everything.h"
#include "support/scale.h"

// Every bad file of the table produces exactly its error, and nothing leaks.
namespace berth::testing {
namespace {

using Open = std::function<void(const std::string& path, bool lax)>;

void expect_refused(const std::vector<BadFile>& files, const std::string& name, const Open& open) {
  const Folder folder;
  for (const BadFile& file : files) {
    const std::string path = folder.write(name, file.bytes);
    for (const auto& [other, bytes] : file.beside) folder.write(other, bytes);
    const std::string which = file.hazard + ", " + file.what;
    try {
      open(path, file.lax);
      ADD_FAILURE() << which << " was accepted";
    } catch (const FormatError& error) {
      EXPECT_EQ(to_string(error.code()), to_string(file.code)) << which << ": " << error.what();
      EXPECT_EQ(error.fact("rule"), file.rule) << which << ": " << error.what();
      EXPECT_TRUE(file.name.empty() || error.fact("name") == file.name) << which << ": " << error.what();
      EXPECT_FALSE(error.asked().empty() || error.why().empty() || error.help().empty()) << error.what();
      EXPECT_NE(error.fact("path"), "") << error.what();
      EXPECT_TRUE(nlohmann::json::accept(to_json(error))) << to_json(error);
    }
    for (const auto& [other, bytes] : file.beside) std::filesystem::remove(folder / other);
  }
}

void open_as_safetensors(const std::string& path, bool lax) { (void)open_safetensors(path, {.lax = lax}); }

TEST(BadFiles, EverySafetensorsFileMeetsItsError) { expect_refused(bad_safetensors(), "bad.safetensors", open_as_safetensors); }
TEST(BadFiles, EveryIndexMeetsItsError) { expect_refused(bad_indices(), "bad.safetensors.index.json", open_as_safetensors); }
TEST(BadFiles, EveryNpyFileMeetsItsError) {
  expect_refused(bad_npy(), "bad.npy", [](const std::string& path, bool) { (void)map_npy(path); });
}
TEST(BadFiles, EveryNpzFileMeetsItsError) {
  expect_refused(bad_npz(), "bad.npz", [](const std::string& path, bool) { (void)open_npz(path); });
}

TEST(BadFiles, TheGoodOnesNextToThemAreRead) {
  const Folder folder;
  EXPECT_EQ(open_safetensors(folder.write("good.safetensors", good_safetensors())).size(), 5U);
  for (const auto& [name, bytes] : good_shards()) folder.write(name, bytes);
  const SafetensorsFile model = open_safetensors(folder.write("good.index.json", good_index()));
  EXPECT_EQ(model.size(), 3U);
  EXPECT_EQ(model.files().size(), 2U);
  EXPECT_EQ(map_npy(folder.write("good.npy", good_npy())).shape(), Shape({2, 3}));
  EXPECT_EQ(open_npz(folder.write("good.npz", good_npz())).size(), 1U);
}

TEST(BadFiles, CoverEveryRowAndEveryKindOfError) {
  std::set<std::string> hazards;
  std::set<std::string> rules;
  std::size_t count = 0;
  for (const auto& files : {bad_safetensors(), bad_indices(), bad_npy(), bad_npz()}) {
    for (const BadFile& file : files) {
      hazards.insert(file.hazard);
      rules.insert(file.rule);
      ++count;
    }
  }
  EXPECT_GE(count, 200U);
  for (const char* const row : {"F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F21", "F22", "F23", "F27"})
    EXPECT_TRUE(hazards.contains(row)) << row;
  // The rules that docs/files.md lists, except those that only a file in use can break: while it is open
  // (file_changed) or read in full (checksum).
  std::ifstream page("docs/files.md");
  std::size_t listed = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `") || line.find("` |") == std::string::npos) continue;
    const std::string rule = line.substr(3, line.find("` |") - 3);
    if (rule == "file_changed" || rule == "checksum") continue;
    EXPECT_TRUE(rules.erase(rule) == 1) << rule << " is listed, and no file breaks it";
    ++listed;
  }
  EXPECT_GT(listed, 30U);
  for (const std::string& rule : rules) ADD_FAILURE() << rule << " is not in docs/files.md";
  did(std::to_string(count) + " files, " + std::to_string(listed) + " rules");
}

// The names of tensors in a file appear in messages and nowhere else.
TEST(BadFiles, NamesFromOutsideAreEscapedAndNeverPaths) {
  const Folder folder;
  const std::string header = R"({"../../\u001b[2J":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})";
  try {
    (void)open_safetensors(folder.write("x.safetensors", safetensors_bytes(header, 1)));
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("\\x1b"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace berth::testing
