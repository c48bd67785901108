// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "file/file_support.h"
#include "support/everything.h"
#include "support/process.h"

namespace berth::testing {
namespace {

class CliFile : public ::testing::Test {
 protected:
  CliFile() {
    save_safetensors(path("m.safetensors"),
                     {{"layer.0.w", full({64, 32}, 1.5, DType::f32, "cpu")},
                      {"layer.1.w", full({64, 32}, 2.5, DType::f32, "cpu")},
                      {"ids\x1b[2J", full({5}, 3, DType::i64, "cpu")}},
                     {.metadata = {{"format", "pt"}}});
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  static Ran command(const std::string& arguments) { return run_command(std::string(BERTH_CLI " ") + arguments); }
  static nlohmann::json json(const std::string& arguments) { return nlohmann::json::parse(command(arguments + " --json").output); }

  const Folder folder_;
};

TEST_F(CliFile, InspectSaysWhatIsInAFile) {
  const Ran table = command("inspect " + path("m.safetensors"));
  EXPECT_EQ(table.exit_code, 0);
  for (const char* const expected :
       {"3 tensors", "layer.0.w", "[64, 32]", "8 KiB", "F32", "I64", "format = pt", "layer ", "no problems found", "ids\\x1b[2J"})
    EXPECT_NE(table.output.find(expected), std::string::npos) << expected << "\n" << table.output;
  EXPECT_EQ(table.output.find('\x1b'), std::string::npos) << "names from outside are escaped";
  const nlohmann::json all = json("inspect " + path("m.safetensors"));
  EXPECT_EQ(all["format"], "safetensors");
  EXPECT_EQ(all["tensors"].size(), 3U);
  EXPECT_EQ(all["tensors"][0]["name"], "layer.0.w");
  EXPECT_EQ(all["tensors"][0]["dtype"], "f32");
  EXPECT_EQ(all["tensors"][0]["shape"], nlohmann::json({64, 32}));
  EXPECT_EQ(all["tensors"][0]["alignment"], 4096);
  EXPECT_EQ(all["dtypes"][0], (nlohmann::json{{"name", "F32"}, {"tensors", 2}, {"bytes", 16384}}));
  EXPECT_EQ(all["prefixes"][0]["name"], "layer");
  EXPECT_EQ(json("inspect --depth 2 " + path("m.safetensors"))["prefixes"].size(), 3U);
  EXPECT_EQ(all["metadata"]["format"], "pt");
  EXPECT_TRUE(all["problems"].empty());
}

TEST_F(CliFile, InspectTellsOfProblems) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},"c":{"dtype":"F4","shape":[2],"data_offsets":[5,6]}})";
  const std::string odd = folder_.write("odd.safetensors", safetensors_bytes(header, 6));
  EXPECT_EQ(json("inspect " + odd)["problems"].size(), 2U);
  EXPECT_NE(command("inspect " + odd).output.find("1 tensor not aligned to the element size"), std::string::npos);
  ASSERT_EQ(command("convert " + odd + ' ' + path("even.safetensors")).exit_code, 0);
  EXPECT_EQ(json("inspect " + path("even.safetensors"))["problems"].size(), 1U) << "all are aligned now";
  EXPECT_EQ(open_safetensors(path("even.safetensors")).bytes("c").item<std::uint8_t>({0}), 5) << "bytes without a dtype go through";
}

TEST_F(CliFile, CheckExitsWithOneAndSaysWhere) {
  EXPECT_EQ(command("check " + path("m.safetensors")).exit_code, 0);
  EXPECT_EQ(json("check " + path("m.safetensors"))["ok"], true);
  const std::string whole = folder_.read("m.safetensors");
  const std::string cut = folder_.write("cut.safetensors", whole.substr(0, whole.size() - 1));
  const Ran said = command("check " + cut);
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_NE(said.output.find("tensor 'ids\\x1b[2J'"), std::string::npos) << said.output;
  const Ran told = run_command(std::string(BERTH_CLI " check --json ") + cut + " 2>/dev/null");
  EXPECT_EQ(told.exit_code, 1);
  const nlohmann::json answer = nlohmann::json::parse(told.output);
  EXPECT_EQ(answer["ok"], false);
  EXPECT_EQ(answer["error"]["facts"]["rule"], "file_truncated");
  EXPECT_EQ(command("check").exit_code, 2);
  save_npz(path("a.npz"), {{"x", full({100}, 1, DType::f32, "cpu")}});
  EXPECT_EQ(command("check " + path("a.npz")).exit_code, 0);
  std::string damaged = folder_.read("a.npz");
  damaged[400] ^= 1;
  EXPECT_EQ(command("check " + folder_.write("b.npz", damaged)).exit_code, 1) << "sums are compared";
}

// One rule for all commands that read: a file that cannot be opened is wrong use, and a file that breaks a rule
// is a result.
TEST_F(CliFile, WhatCannotBeOpenedIsWrongUse) {
  const std::string broken = folder_.write("broken.safetensors", "x");
  std::filesystem::create_symlink(path("loop"), path("loop"));
  for (const std::string name : {"inspect ", "check ", "convert ", "bench load ", "plan ", "replay ", "snapshot show "}) {
    const std::string out = name == "convert " ? ' ' + path("out") : std::string();
    for (const std::string& given : {path("nothing"), path("loop"), path("nothing/below"), folder_.path()})
      EXPECT_EQ(command(name + given + out).exit_code, 2) << name << given;
    EXPECT_EQ(command(name + broken + out).exit_code, 1) << name << "a file that is none";
  }
  EXPECT_EQ(command("convert " + path("m.safetensors") + ' ' + path("no/folder")).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  folder_.write("m.index.json", R"({"weight_map":{"a":"gone.safetensors"}})");
  EXPECT_EQ(command("check " + path("m.index.json")).exit_code, 1) << "the index is wrong, and was opened";
}

TEST_F(CliFile, ConvertLooksAtItsOptionsFirst) {
  for (const std::string wrong : {"--dtype bf17", "--dtype i32", "--align much"}) {
    const Ran ran = command("convert " + path("nothing") + ' ' + path("out") + ' ' + wrong);
    EXPECT_EQ(ran.exit_code, 2) << wrong;
    EXPECT_EQ(ran.output.find("nothing"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find(wrong.substr(wrong.rfind(' ') + 1)), std::string::npos) << ran.output;
  }
  EXPECT_EQ(command("convert " + path("m.safetensors") + ' ' + path("o.npz") + " --align 64").exit_code, 2) << "not of arrays";
}

TEST_F(CliFile, ConvertChangesDtypeFormatAndAlignment) {
  const nlohmann::json done = json("convert " + path("m.safetensors") + ' ' + path("half.safetensors") + " --dtype bf16 --align 64KiB");
  EXPECT_EQ(done["converted"], 2);
  EXPECT_EQ(done["bytes_out"], 2 * 64 * 32 * 2 + 40);
  const SafetensorsFile half = open_safetensors(path("half.safetensors"));
  EXPECT_EQ(half.files()[0].data_offset, 65536U);
  EXPECT_EQ(half["layer.1.w"].dtype(), DType::bf16);
  EXPECT_EQ(half["ids\x1b[2J"].dtype(), DType::i64) << "whole numbers stay";
  EXPECT_EQ(half.metadata()[0].second, "pt");
  EXPECT_EQ(command("convert " + path("m.safetensors") + ' ' + path("m.npz")).exit_code, 0);
  EXPECT_EQ(command("convert " + path("m.npz") + ' ' + path("back.safetensors")).exit_code, 0);
  EXPECT_TRUE(equal(open_safetensors(path("back.safetensors"))["layer.0.w"], open_safetensors(path("m.safetensors"))["layer.0.w"]));
  EXPECT_EQ(command("convert " + path("m.safetensors") + ' ' + path("m.npy")).exit_code, 2) << "three do not fit into one";
  save_npy(path("x.npy"), full({2}, 1, DType::f64, "cpu"));
  EXPECT_EQ(command("convert " + path("x.npy") + ' ' + path("x.safetensors") + " --dtype f32").exit_code, 0);
  EXPECT_EQ(open_safetensors(path("x.safetensors"))["x"].dtype(), DType::f32);
  EXPECT_EQ(command("convert " + path("m.safetensors") + ' ' + path("m.safetensors") + " --dtype f16").exit_code, 0) << "in place";
  EXPECT_EQ(open_safetensors(path("m.safetensors"))["layer.0.w"].item<float16>({0, 0}), float16(1.5));
  EXPECT_EQ(command("convert " + path("m.safetensors") + ' ' + path("o.safetensors") + " --dtype f7").exit_code, 2);
  EXPECT_EQ(command("convert " + path("m.safetensors") + ' ' + path("o.safetensors") + " --align 3").exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(path("o.safetensors")));
}

}  // namespace
}  // namespace berth::testing
