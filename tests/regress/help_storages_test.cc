// SPDX-License-Identifier: Apache-2.0
// What errors of storages, views and their exchange say would help is done here, as a user would do it.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "memory/adaptor.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

TEST(HelpFollowed, OfStorages) {
  const Storage made = from_data({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}, "cpu");
  const Storage remote = zeros({4}, DType::f32, "sim:0");
  std::array<float, 6> outside{};
  follow({
      {"give rows of one length, or the values in one list with a shape",
       [] {
         from_data({{1.0F, 2.0F}, {3.0F}}, "cpu");
       },
       [] {
         from_data({{1.0F, 2.0F}, {3.0F, 4.0F}}, "cpu");
         from_data({1.0F, 2.0F, 3.0F}, {3, 1}, "cpu");
       }},
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

// An allocator of a third party that does not know its blocks by address.
struct Forgetful : internal::memory::Adaptor<Allocator> {
  Forgetful() : Adaptor("forgetful", direct("cpu")) {}
  Result<bool> locate(Block& block) noexcept override { return BlockSource::locate(block); }
};

TEST(HelpFollowed, OfBlocksByAddress) {
  const auto memory = std::make_shared<Forgetful>();
  const Block block = memory->allocate({.bytes = 100});
  follow({
      {"keep the block, or its size for block_at(data, bytes)", [&] { (void)memory->block_at(block.data); },
       [&] { memory->deallocate(memory->block_at(block.data, 100)); }},
  });
  EXPECT_EQ(memory->stats().live_blocks, 0U);
}

TEST(HelpFollowed, OfStoragesThatGrow) {
  std::array<float, 2> outside{};
  const Storage made = zeros({4, 4}, DType::f32, "cpu");
  const Storage shared = zeros({4}, DType::f32, "shared");
  const auto resize = [](Storage x) { x.resize({100}); };
  std::shared_ptr<const void> held = made.buffer().keep_alive();
  follow({
      {"to(\"cpu\") gives a copy that can grow", [&] { resize(shared); }, [&] { resize(shared.to("cpu")); }},
      {"clone() gives a copy that can grow", [&] { resize(from_blob(outside.data(), {2}, DType::f32, "cpu")); },
       [&] { resize(from_blob(outside.data(), {2}, DType::f32, "cpu").clone()); }},
      {"clone() gives a copy of these elements alone, which can grow", [&] { resize(made.slice(0, 0, 2)); },
       [&] { resize(made.slice(0, 0, 2).clone()); }},
      {"wait until nobody else has the address, or resize a clone()", [&] { resize(made); },
       [&] {
         resize(made.clone());
         held = nullptr;
         resize(made);
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
      {"share a clone(), or wait until nobody else has the address", [&] { share(from_dlpack(to_dlpack(made))); },
       [&] { share(from_dlpack(to_dlpack(made)).clone()); }},
      {"share a clone(), adopt the memory with a deleter, or pass {.borrowed = true} and leave the lender the old bytes",
       [&] { share(from_blob(outside.data(), {2}, DType::f32, "cpu")); },
       [&] {
         share(from_blob(outside.data(), {2}, DType::f32, "cpu").clone());
         share(from_blob(outside.data(), {2}, DType::f32, "cpu", [](void*) {}));
         share(from_blob(outside.data(), {2}, DType::f32, "cpu"), {.borrowed = true});
       }},
      {"put them into a storage, and send that", [&, &a = near] { a.send_bytes(much); },
       [&, &a = near, &b = far] {
         const Storage packed = zeros({static_cast<std::int64_t>(much.size())}, DType::u8, "cpu");
         share(packed);
         a.send(packed);
         EXPECT_EQ(b.receive().storage->num_elements(), much.size());
       }},
  });
}

}  // namespace
}  // namespace berth::testing
