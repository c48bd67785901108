// SPDX-License-Identifier: Apache-2.0
// What errors of files that are written and mapped say would help is done here, as a user would do it.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "support/errors.h"
#include "support/everything.h"
#include "support/scratch.h"

namespace berth::testing {
namespace {

TEST(HelpFollowed, OfFiles) {
  const Scratch file;
  const Storage made = from_data({1.0F, 2.0F}, {2}, "cpu");
  const auto save = [&] { save_safetensors(file.path, {{"w", made}}); };
  follow({
      {"use names that are UTF-8 without zero bytes",
       [&] {
         save_safetensors(file.path, {{"\xff", made}});
       },
       save},
      {"use 4096",
       [&] {
         save_safetensors(file.path, {{"w", made}}, {.alignment = 3});
       },
       [&] {
         save_safetensors(file.path, {{"w", made}}, {.alignment = 4096});
       }},
      {"entries() and berth inspect list them", [&] { (void)open_safetensors(file.path)["v"]; },
       [&] {
         const SafetensorsFile opened = open_safetensors(file.path);
         EXPECT_EQ(opened[opened.entries().front().name].item<float>({1}), 2);
       }},
      {"use a number of processors of this machine", [&] { (void)load(file.path, "cpu", {.threads = -1}); },
       [&] { (void)load(file.path, "cpu", {.threads = 1}); }},
      {"use auto, map, read or direct", [] { (void)parse_load_mode("quick"); },
       [&] {
         for (const char* mode : {"auto", "map", "read", "direct"}) (void)load(file.path, "cpu", {.mode = parse_load_mode(mode)});
       }},
      {"iterate over them to see their names, or use find(name), which may return nullptr", [&] { (void)load(file.path, "cpu")["v"]; },
       [&] {
         const LoadedTensors loaded = load(file.path, "cpu");
         for (const auto& tensor : loaded) EXPECT_EQ(tensor.name, "w");
         EXPECT_EQ(loaded.find("v"), nullptr);
       }},
      {"save_npy writes a new one", [&] { (void)map_npy(file.path, FileMode::create); },
       [&] {
         save_npy(file.path, made);
         EXPECT_EQ(map_npy(file.path).item<float>({0}), 1);
       }},
      {"use each name once",
       [&] {
         save_npz(file.path, {{"a", made}, {"a", made}});
       },
       [&] {
         save_npz(file.path, {{"a", made}, {"b", made}});
       }},
      {"use names without '/' and \"..\"",
       [&] {
         save_npz(file.path, {{"a/b", made}});
       },
       [&] {
         save_npz(file.path, {{"a.b", made}});
       }},
      {"use a shorter one",
       [&] {
         save_npz(file.path, {{std::string(70'000, 'a'), made}});
       },
       [&] {
         save_npz(file.path, {{std::string(60'000, 'a'), made}});
       }},
      {"give a shape", [&] { (void)map_file(file.path, DType::f32, FileMode::create); },
       [&] { (void)map_file(file.path, {2}, DType::f32, FileMode::create); }},
      {"pass one that map_file or a file's [] returned", [&] { flush_mapped(made); },
       [&] { flush_mapped(map_file(file.path, {2}, DType::f32, FileMode::read_write)); }},
  });
}

TEST(HelpFollowed, OfFilesThatAreWritten) {
  const Scratch file;
  const Storage made = from_data({1.0F, 2.0F}, {2}, "cpu");
  const auto writer = [&] { return SafetensorsWriter(file.path, {{.name = "w", .dtype = DType::f32, .shape = {2}}}); };
  const auto write_all = [&] {
    SafetensorsWriter whole = writer();
    whole.write("w", made);
    whole.commit();
  };
  follow({
      {"use another",
       [&] {
         save_safetensors(file.path, {{"__metadata__", made}});
       },
       [&] {
         save_safetensors(file.path, {{"w", made}});
       }},
      {"use each name once",
       [&] {
         save_safetensors(file.path, {{"w", made}, {"w", made}});
       },
       [&] {
         save_safetensors(file.path, {{"w", made}, {"v", made}});
       }},
      {"name it when the writer is made", [&] { writer().write("v", made); }, write_all},
      {"write each once",
       [&] {
         SafetensorsWriter twice = writer();
         twice.write("w", made);
         twice.write("w", made);
       },
       write_all},
      {"announce what is written", [&] { writer().write("w", made.to(DType::f64)); }, write_all},
      {"write every tensor that was announced", [&] { writer().commit(); }, write_all},
      {"finish once",
       [&] {
         SafetensorsWriter twice = writer();
         twice.write("w", made);
         twice.commit();
         twice.commit();
       },
       write_all},
      {"use f64, f32, bf16, f16 or an f8, or convert the tensors afterwards with to(dtype)",
       [&] { (void)load(file.path, "cpu", {.dtype = DType::i32}); },
       [&] {
         for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3})
           (void)load(file.path, "cpu", {.dtype = dtype});
         (void)load(file.path, "cpu")["w"].to(DType::i32);
       }},
      {"convert it with to(), or write safetensors", [&] { save_npy(file.path, made.to(DType::bf16)); },
       [&] {
         save_npy(file.path, made.to(DType::bf16).to(DType::f32));
         save_safetensors(file.path, {{"w", made.to(DType::bf16)}});
       }},
  });
  (void)map_file(file.path, {12}, DType::u8, FileMode::create);  // twelve bytes
  follow({
      {"map it as u8 and clone the part you need, or move the data in the file",
       [&] { (void)map_file(file.path, DType::f32, FileMode::read, {.offset = 3}); },
       [&] { (void)map_file(file.path, DType::u8, FileMode::read, {.offset = 3}).slice(0, 0, 4).clone(); }},
      {"map it as read_write, or leave may_grow out",
       [&] { (void)map_file(file.path, {1}, DType::f32, FileMode::read, {.may_grow = true}); },
       [&] {
         (void)map_file(file.path, {1}, DType::f32, FileMode::read_write, {.may_grow = true});
         (void)map_file(file.path, {1}, DType::f32, FileMode::read);
       }},
      {"leave the shape out to map what is there, create the file, or open it for writing with may_grow",
       [&] { (void)map_file(file.path, {4}, DType::f32, FileMode::read); },
       [&] {
         EXPECT_EQ(map_file(file.path, DType::f32, FileMode::read).num_elements(), 3U);
         (void)map_file(file.path + ".more", {4}, DType::f32, FileMode::create);
         (void)map_file(file.path + ".more", {8}, DType::f32, FileMode::read_write, {.may_grow = true});
         std::remove((file.path + ".more").c_str());
       }},
      {"give the offset and the dtype that the file was written with, or a shape", [&] { (void)map_file(file.path, DType::f64); },
       [&] { (void)map_file(file.path, DType::u8); }},
  });
}

}  // namespace
}  // namespace berth::testing
