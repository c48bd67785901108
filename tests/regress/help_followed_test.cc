// SPDX-License-Identifier: Apache-2.0
// What errors say would help is done here, as a user would do it, and works. Each row: the mistake, the help that
// the error gives, and that help followed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "berth/record/trace_file.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<Allocator> one(const std::shared_ptr<Allocator>& memory) {
  memory->deallocate(memory->allocate({.bytes = 1000}));
  return memory;
}

// The text of an example in a help: what follows "as in ".
std::string example_in(const std::string& help) {
  const std::size_t at = help.find("as in ");
  return at == std::string::npos ? "" : help.substr(at + 6);
}

// A path that is removed again.
struct Scratch {
  std::string path = ::testing::TempDir() + "/berth-help-" + std::to_string(getpid());
  ~Scratch() { std::remove(path.c_str()); }
};

TEST(HelpFollowed, OfAllocators) {
  const auto parent = pool("cpu");
  const auto child = private_pool(parent, {});
  follow({
      {"use 0 to release at once, or PoolOptions::kNever", [] { pool("cpu", {.decay = milliseconds(-1)}); },
       [] {
         one(pool("cpu", {.decay = milliseconds(0)}));
         one(pool("cpu", {.decay = PoolOptions::kNever}));
       }},
      {"use 1, or a little more", [] { pool("cpu", {.target_ratio = 0.5}); },
       [] {
         one(pool("cpu", {.target_ratio = 1}));
         one(pool("cpu", {.target_ratio = 1.02}));
       }},
      {"use 60 KiB, or leave it at 128 KiB", [] { pool("cpu", {.small_bytes = 200_KiB}); },
       [] {
         one(pool("cpu", {.small_bytes = 60_KiB}));
         one(pool("cpu", {.small_bytes = 128_KiB}));
       }},
      {"pass what pool() returned, and put adaptors around the private one", [] { private_pool(direct("cpu"), {}); },
       [&] { one(limit(private_pool(parent, {}), 1_MiB)); }},
      {"pass the pool whose pages that one shares", [&] { private_pool(child, {}); }, [&] { one(private_pool(parent, {})); }},
      {"leave decay out", [&] { private_pool(parent, {.decay = milliseconds(-1)}); }, [&] { one(private_pool(parent, {})); }},
      {"leave decay out, or set fixed_pages = false", [&] { private_pool(parent, {.fixed_pages = true, .decay = milliseconds(5)}); },
       [&] {
         one(private_pool(parent, {.fixed_pages = true}));
         one(private_pool(parent, {.fixed_pages = false, .decay = milliseconds(5)}));
       }},
      {"pass one, such as direct(\"cpu\")", [] { limit(nullptr, 1_MiB); }, [] { one(limit(direct("cpu"), 1_MiB)); }},
      {"use at most 64 KiB", [] { check(direct("cpu"), {.canary_bytes = 65_KiB}); },
       [] { one(check(direct("cpu"), {.canary_bytes = 64_KiB})); }},
      {"give it a capacity", [] { arena("cpu", 0); }, [] { one(arena("cpu", 64_KiB)); }},
      {"raise the limit, or make the smallest block smaller", [] { rounded("cpu", {.least_bytes = 64_KiB, .limit_bytes = 4_KiB}); },
       [] {
         one(rounded("cpu", {.least_bytes = 64_KiB, .limit_bytes = 1_MiB}));
         one(rounded("cpu", {.least_bytes = 1_KiB, .limit_bytes = 4_KiB}));
       }},
      {"make one for that device", [] { set_default_allocator("cpu", direct("sim:0")); },
       [] {
         const std::shared_ptr<Allocator> before = default_allocator("cpu");
         set_default_allocator("cpu", direct("cpu"));
         one(default_allocator("cpu"));
         set_default_allocator("cpu", before);
       }},
      {"use an allocator for cpu", [] { MemoryResource(direct("sim:0")); },
       [] {
         MemoryResource resource(direct("cpu"));
         EXPECT_EQ(std::pmr::vector<int>(3, 7, &resource).size(), 3U);
       }},
  });
}

TEST(HelpFollowed, OfOptionsInText) {
  for (const char* wrong : {"pool:magic=1", "pool:limit=much", "pool:limit=0", "pool:decay=blue", "pool:ratio=x", "pool:limit=1MiB,",
                            "pool:limit=1MiB,limit=1MiB", "rounded:magic=1", "exact:magic=1"}) {
    const std::string help = help_of([&] { make_allocator(wrong, "cpu"); });
    const std::string example = example_in(help);
    ASSERT_FALSE(example.empty()) << wrong << ": " << help;
    EXPECT_EQ(help_of([&] { one(make_allocator(example, "cpu")); }), "no error") << wrong << ": " << help;
  }
}

TEST(HelpFollowed, OfMarksAndHolds) {
  const auto scratch = arena("cpu", 1_MiB);
  const auto memory = pool("cpu");
  const ArenaMark early = scratch->mark();
  const Block block = scratch->allocate({.bytes = 100});
  const ArenaMark late = scratch->mark();
  follow({
      {"free them, or drop the storages that use them, first", [&] { scratch->reset(); },
       [&] {
         scratch->deallocate(block);
         scratch->reset(late);
         scratch->reset(early);
       }},
      {"take marks and reset to them in reverse order", [&] { scratch->reset(late); },
       [&] {
         const ArenaMark first = scratch->mark();
         scratch->deallocate(scratch->allocate({.bytes = 100}));
         const ArenaMark second = scratch->mark();
         scratch->deallocate(scratch->allocate({.bytes = 100}));
         scratch->reset(second);
         scratch->reset(first);
       }},
      {"end the hold first, or reserve before it; and do not allocate in a signal handler",
       [&] {
         const Hold hold = memory->hold();
         (void)memory->allocate({.bytes = 4_MiB});
       },
       [&] {
         memory->deallocate(memory->allocate({.bytes = 4_MiB}));
         memory->reserve(8_MiB);
         const Hold hold = memory->hold();
         memory->deallocate(memory->allocate({.bytes = 8_MiB}));
       }},
  });
}

// By as much as the error says, and not by less.
TEST(HelpFollowed, OfALimit) {
  constexpr std::size_t kLimit = 4_MiB;
  const auto memory = pool("cpu", {.limit_bytes = kLimit});
  const Block held = memory->allocate({.bytes = 3_MiB, .tag = Tag("weights")});
  std::size_t missing = 0;
  try {
    (void)memory->allocate({.bytes = 2_MiB});
  } catch (const OutOfMemory& refused) {
    missing = refused.report().would_be_enough_bytes;
    EXPECT_EQ(refused.help(), "free 1 MiB more, or raise the limit by as much; most is held by 'weights' (3 MiB)") << refused.what();
  }
  ASSERT_GT(missing, 0U);
  const auto fits = [&](std::size_t limit_bytes) {
    const auto other = pool("cpu", {.limit_bytes = limit_bytes});
    const Block first = other->allocate({.bytes = 3_MiB});
    const std::optional<Block> second = other->try_allocate({.bytes = 2_MiB});
    if (second) other->deallocate(*second);
    other->deallocate(first);
    return second.has_value();
  };
  EXPECT_TRUE(fits(kLimit + missing));
  EXPECT_FALSE(fits(kLimit + missing - 4_KiB));
  memory->deallocate(held);
  memory->deallocate(memory->allocate({.bytes = 2_MiB}));
}

TEST(HelpFollowed, OfStorages) {
  const Storage made = from_data({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}, "cpu");
  const Storage remote = zeros({4}, DType::f32, "sim:0");
  std::array<float, 6> outside{};
  follow({
      {"make them equal",
       [] {
         from_data({1.0F, 2.0F}, {3}, "cpu");
       },
       [] {
         from_data({1.0F, 2.0F}, {2}, "cpu");
       }},
      {"write the others out",
       [&] {
         (void)made.reshape({-1, -1});
       },
       [&] {
         (void)made.reshape({3, -1});
       }},
      {"use sizes of 0 or more, and at most one -1",
       [&] {
         (void)made.reshape({-2, 3});
       },
       [&] {
         (void)made.reshape({2, -1});
       }},
      {"write the dimension out",
       [&] {
         (void)zeros({0, 3}, DType::f32, "cpu").reshape({0, -1});
       },
       [&] {
         (void)zeros({0, 3}, DType::f32, "cpu").reshape({0, 3});
       }},
      {"leave one dimension at -1 to have it inferred", [&] { (void)made.reshape({7}); }, [&] { (void)made.reshape({-1}); }},
      {"only axes of size 1, and new ones in front, can be expanded",
       [&] {
         (void)made.expand({2, 6});
       },
       [&] {
         (void)made.reshape({1, 6}).expand({5, 4, 6});
       }},
      {"use to(i32) to convert or reinterpret to see the bits", [&] { (void)made.data<std::int32_t>(); },
       [&] {
         EXPECT_EQ(made.to(DType::i32).data<std::int32_t>()[1], 2);
         EXPECT_EQ(made.reinterpret(DType::i32).data<std::int32_t>()[0], 0x3f800000);
       }},
      {"use to(\"cpu\") for a copy, or data_ptr() for code that runs on the device", [&] { (void)remote.data<float>(); },
       [&] {
         EXPECT_EQ(remote.to("cpu").data<float>()[0], 0);
         EXPECT_NE(remote.data_ptr(), nullptr);
       }},
      {"clone() gives a copy that can be written", [&] { (void)made.read_only().data<float>(); },
       [&] { made.read_only().clone().data<float>()[0] = 9; }},
      {"clone() gives an aligned copy",
       [&] { (void)from_blob(reinterpret_cast<std::byte*>(outside.data()) + 1, {2}, DType::f32, "cpu").data<float>(); },
       [&] { (void)from_blob(reinterpret_cast<std::byte*>(outside.data()) + 1, {2}, DType::f32, "cpu").clone().data<float>(); }},
      {"give one index for each dimension", [&] { (void)made.item<float>({1}); },
       [&] {
         EXPECT_EQ(made.item<float>({1, 0}), 4);
       }},
      {"use indices within the shape",
       [&] {
         (void)made.item<float>({2, 0});
       },
       [&] {
         EXPECT_EQ(made.item<float>({1, 2}), 6);
       }},
      {"clone() first, or choose a dtype of the same size", [&] { (void)made.transpose(0, 1).reinterpret(DType::i64); },
       [&] {
         EXPECT_EQ(made.transpose(0, 1).clone().reinterpret(DType::i64).shape(), (Shape{3, 1}));
         (void)made.transpose(0, 1).reinterpret(DType::i32);
       }},
      {"drop them first",
       [&] {
         Storage first = made.clone();
         const Storage second = first;
         first.close();
       },
       [&] {
         Storage first = made.clone();
         { const Storage second = first; }
         first.close();
       }},
      {"merge dimensions first", [] { (void)Shape(std::vector<std::int64_t>(kMaxRank + 1, 1)); },
       [] { (void)Shape(std::vector<std::int64_t>(kMaxRank, 1)); }},
      {"dimensions are 0 or more; only reshape takes one -1, which it infers",
       [] {
         (void)Shape{2, -1};
       },
       [&] {
         (void)Shape{2, 0};
         (void)made.reshape({2, -1});
       }},
      {"pass an address, or 0 bytes", [] { (void)wrap_buffer(nullptr, 8, "cpu"); },
       [&] {
         (void)wrap_buffer(outside.data(), 8, "cpu");
         (void)wrap_buffer(nullptr, 0, "cpu");
       }},
  });
}

TEST(HelpFollowed, OfExchange) {
  const Storage made = from_data({1.0F, 2.0F}, {2}, "cpu");
  const Storage remote = zeros({2}, DType::f32, "sim:0");
  std::array<float, 2> outside{};
  const std::vector<std::byte> much(1_MiB);
  auto [near, far] = Channel::make_pair();
  follow({
      {"export the storage again", [] { (void)from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr)); },
       [&] { EXPECT_EQ(from_dlpack(to_dlpack_legacy(made)).item<float>({1}), 2); }},
      {"use to_dlpack, or export a clone()", [&] { (void)to_dlpack_legacy(made.read_only()); },
       [&] {
         (void)from_dlpack(to_dlpack(made.read_only()));
         (void)from_dlpack(to_dlpack_legacy(made.read_only().clone()));
       }},
      {"use to(\"cpu\") first", [&] { share(remote); }, [&] { share(remote.to("cpu")); }},
      {"share a clone(), or wait until nobody else has the address", [&] { share(from_blob(outside.data(), {2}, DType::f32, "cpu")); },
       [&] { share(from_blob(outside.data(), {2}, DType::f32, "cpu").clone()); }},
      {"put them into a storage, and send that", [&, &a = near] { a.send_bytes(much); },
       [&, &a = near, &b = far] {
         const Storage packed = zeros({static_cast<std::int64_t>(much.size())}, DType::u8, "cpu");
         share(packed);
         a.send(packed);
         EXPECT_EQ(b.receive().storage->num_elements(), much.size());
       }},
  });
}

TEST(HelpFollowed, OfDevicesAndTraces) {
  const Scratch file;
  const Scratch second{file.path + ".second"};
  follow({
      {"use cpu:0", [] { (void)zeros({1}, DType::f32, "cpu:7"); }, [] { (void)zeros({1}, DType::f32, "cpu:0"); }},
      {"use a device that make_sim returned, or sim:0", [] { (void)sim_control("cpu"); },
       [] {
         (void)sim_control("sim:0");
         (void)sim_control(make_sim({}));
       }},
      {"change page_bytes", [] { make_sim({.page_bytes = 3}); }, [] { make_sim({.page_bytes = 4_KiB}); }},
      {"use 128 KiB or more", [&] { start_trace(file.path, {.limit_bytes = 1000}); },
       [&] {
         start_trace(file.path, {.limit_bytes = 128_KiB});
         stop_trace();
       }},
      {"name a file that can be created", [] { start_trace("/nowhere/at/all.trace"); },
       [&] {
         start_trace(file.path);
         stop_trace();
       }},
      {"stop that trace first, or unset BERTH_TRACE",
       [&] {
         start_trace(file.path);
         start_trace(second.path);
       },
       [&] {
         stop_trace();
         start_trace(second.path);
         stop_trace();
       }},
  });
}

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

TEST(HelpFollowed, OfCopiesAndObservers) {
  const Scratch file;
  const Storage row = from_data({1.0F, 2.0F}, {1, 2}, "cpu");
  const Storage square = zeros({2, 2}, DType::f32, "cpu");
  const std::vector<TraceEvent> events;
  const int threads = copy_threads();
  follow({
      {"use reshape or expand to make them equal", [&] { copy(row.span(), square.span()); },
       [&] {
         copy(row.expand({2, 2}).span(), square.span());
       }},
      {"write to a clone, or to the storage it is a view of",
       [&] {
         copy(square.span(), row.clone().expand({2, 2}).span());
       },
       [&] {
         copy(square.span(), row.expand({2, 2}).clone().span());
         copy(square.slice(0, 0, 1).span(), row.clone().span());
       }},
      {"use a number of processors of this machine", [] { set_copy_threads(0); }, [&] { set_copy_threads(threads); }},
      {"use 0 to take none, or 1 ms or more", [] { Profiler({.every = milliseconds(-1)}); },
       [] {
         { Profiler profiler({.every = milliseconds(0)}); }
         { Profiler profiler({.every = milliseconds(1)}); }
       }},
      {"leave it out, or ask for 2 or more", [] { Profiler({.most_samples = 1}); },
       [] {
         { const Profiler profiler; }
         { Profiler profiler({.most_samples = 2}); }
       }},
      {"end that one first, or unset BERTH_PROFILE",
       [] {
         const Profiler first;
         const Profiler second;
       },
       [] {
         { const Profiler first; }
         const Profiler second;
       }},
      {"ask for fewer", [] { Tracker({.stack_depth = 1000}); }, [] { Tracker({.stack_depth = 4}); }},
      {"name a file that can be created", [] { save_snapshot("/nowhere/at/all.json"); }, [&] { save_snapshot(file.path); }},
      {"use 1 or more", [&] { (void)plan_replay(events, 0); }, [&] { (void)plan_replay(events, 1); }},
      {"use 1 or more", [&] { (void)replay(plan_replay(events), {.threads = 0}); },
       [&] { (void)replay(plan_replay(events), {.threads = 1}); }},
      {"leave out the touching, or use the device cpu", [&] { (void)replay(plan_replay(events), {.device = "sim:0", .touch = true}); },
       [&] {
         (void)replay(plan_replay(events), {.device = "sim:0"});
         (void)replay(plan_replay(events), {.device = "cpu", .touch = true});
       }},
  });
}

TEST(HelpFollowed, OfShapesAndViews) {
  const Storage square = zeros({4, 4}, DType::f32, "cpu");
  const Storage turned = square.transpose(0, 1);
  const std::vector<Storage> two = {square, square.clone()};
  std::vector<float> values(16);
  follow({
      {"check the dimensions",
       [] {
         (void)Shape{INT64_MAX, 2}.num_elements();
       },
       [] {
         (void)Shape{4, 2}.num_elements();
       }},
      {"give as many strides as dimensions",
       [&] {
         (void)Storage(square.buffer(), DType::f32, {4, 4}, Strides{1}, 0);
       },
       [&] {
         (void)Storage(square.buffer(), DType::f32, {4, 4}, Strides{4, 1}, 0);
       }},
      {"use a step of 1 or more, or a negative one", [&] { (void)square.slice(0, 0, 4, 0); },
       [&] {
         (void)square.slice(0, 0, 4, 2);
         (void)square.slice(0, 3, 0, -1);
       }},
      {"use an index within it", [&] { (void)square.select(0, 4); }, [&] { (void)square.select(0, 3); }},
      {"only an axis of size 1 can be removed", [&] { (void)square.squeeze(0); }, [&] { (void)square.slice(0, 0, 1).squeeze(0); }},
      {"use -3 to 2", [&] { (void)square.unsqueeze(3); },
       [&] {
         (void)square.unsqueeze(-3);
         (void)square.unsqueeze(2);
       }},
      {"use clone().reshape(...), which copies", [&] { (void)turned.reshape({16}); }, [&] { (void)turned.clone().reshape({16}); }},
      {"use Strides::contiguous(shape)",
       [&] {
         StridedSpan bare = square.span();
         bare.strides = Strides{1};
         copy(bare, square.span());
       },
       [&] {
         StridedSpan whole = square.clone().span();
         whole.strides = Strides::contiguous(whole.shape);
         copy(whole, square.span());
       }},
      {"pass one target for each source",
       [&] {
         const StridedSpan sources[] = {square.span(), square.span()};
         const StridedSpan targets[] = {two[0].span()};
         copy_batch(sources, targets);
       },
       [&] {
         const StridedSpan sources[] = {two[1].span()};
         const StridedSpan targets[] = {two[0].span()};
         copy_batch(sources, targets);
       }},
      {"pass the address of the first",
       [&] {
         StridedSpan none = square.span();
         none.data = nullptr;
         copy(none, square.span());
       },
       [&] {
         StridedSpan some = square.span();
         some.data = values.data();
         copy(some, square.span());
       }},
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
      {"leave the shape out to map what is there, or create the file", [&] { (void)map_file(file.path, {4}, DType::f32, FileMode::read); },
       [&] {
         EXPECT_EQ(map_file(file.path, DType::f32, FileMode::read).num_elements(), 3U);
         (void)map_file(file.path + ".more", {4}, DType::f32, FileMode::create);
         std::remove((file.path + ".more").c_str());
       }},
      {"give the offset and the dtype that the file was written with, or a shape", [&] { (void)map_file(file.path, DType::f64); },
       [&] { (void)map_file(file.path, DType::u8); }},
  });
}

}  // namespace
}  // namespace berth::testing
