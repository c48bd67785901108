// SPDX-License-Identifier: Apache-2.0
// What errors of dtypes, shapes, buffers, storages and copies say would help is done here, as a user would do it.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

TEST(HelpFollowed, OfSizesAndDtypes) {
  follow({
      {"check the dimensions and counts: no machine has that much memory", [] { (void)checked_multiply(SIZE_MAX, 2, "rows"); },
       [] { (void)checked_multiply(1024, 2, "rows"); }},
      {"check where the number comes from", [] { (void)checked_narrow<std::int8_t>(1000, "a rank"); },
       [] { (void)checked_narrow<std::int8_t>(10, "a rank"); }},
      {"swap the bytes and use the little-endian type", [] { (void)parse_dtype(">f4"); },
       [] { EXPECT_EQ(parse_dtype("<f4"), DType::f32); }},
      {"use smaller strides", [] { (void)reach(Shape{3}, Strides{INT64_MAX}); }, [] { (void)reach(Shape{3}, Strides{1}); }},
  });
  const std::string help = help_of([] { (void)parse_dtype("f99"); });
  ASSERT_TRUE(is_like(help, "use one of …, or read the bytes as u8")) << help;
  for (const DTypeInfo& one : all_dtypes()) {
    EXPECT_NE(help.find(one.name), std::string::npos) << one.name;
    (void)parse_dtype(one.name);
  }
}

TEST(HelpFollowed, OfBuffers) {
  std::array<std::byte, 64> memory{};
  const Buffer small = make_buffer(16, "cpu");
  const Buffer large = make_buffer(32, "cpu");
  follow({
      {"make the target as large as the source", [&] { small.copy_from(large); }, [&] { make_buffer(32, "cpu").copy_from(large); }},
      {"pass one, such as direct(\"cpu\"), or a device", [] { (void)make_buffer(16, std::shared_ptr<Allocator>()); },
       [] {
         (void)make_buffer(16, direct("cpu"));
         (void)make_buffer(16, "cpu");
       }},
      {"check the size", [&] { (void)wrap_buffer(memory.data(), SIZE_MAX, "cpu"); },
       [&] { (void)wrap_buffer(memory.data(), memory.size(), "cpu"); }},
      {"check the size", [&] { fill_bytes(memory.data(), "cpu", 0, SIZE_MAX); },
       [&] { fill_bytes(memory.data(), "cpu", 0, memory.size()); }},
      {"leave it out for the device's default", [] { (void)make_buffer(16, "cpu", {.alignment = 3}); },
       [] { (void)make_buffer(16, "cpu"); }},
  });
}

TEST(HelpFollowed, OfStoragesOverOtherMemory) {
  std::vector<float> values(16);
  const Storage square = zeros({4, 4}, DType::f32, "cpu");
  const Storage scalar = zeros({}, DType::f32, "cpu");
  follow({
      {"check the shape and the size",
       [&] {
         (void)from_blob(values.data(), {4, 5}, DType::f32, "cpu", {}, {.size_bytes = values.size() * sizeof(float)});
       },
       [&] {
         (void)from_blob(values.data(), {4, 4}, DType::f32, "cpu", {}, {.size_bytes = values.size() * sizeof(float)});
       }},
      {"check the address, the shape and the strides", [&] { (void)from_blob(static_cast<float*>(nullptr), {4}, DType::f32, "cpu"); },
       [&] { (void)from_blob(values.data(), {4}, DType::f32, "cpu"); }},
      {"use a smaller shape, stride or offset",
       [&] {
         (void)square.as_strided({4, 4}, {5, 1}, 0);
       },
       [&] {
         (void)square.as_strided({3, 4}, {5, 1}, 0);
         (void)square.as_strided({4, 4}, {3, 1}, 0);
         (void)square.as_strided({4, 4}, {4, 1}, 0);
       }},
      {"use contiguous() first", [&] { (void)square.transpose(0, 1).elements<float>(); },
       [&] { (void)square.transpose(0, 1).contiguous().elements<float>(); }},
      {"a scalar has no axis", [&] { (void)scalar.select(0, 0); }, [&] { (void)scalar.reshape({1}).select(0, 0); }},
      {"use -2 to 1", [&] { (void)square.select(2, 0); },
       [&] {
         (void)square.select(-2, 0);
         (void)square.select(1, 0);
       }},
      {"a scalar has no axes: only permute({}) works", [&] { (void)scalar.permute({0}); }, [&] { (void)scalar.permute({}); }},
      {"name each axis from 0 to 1 once, in the new order",
       [&] {
         (void)square.permute({0, 0});
       },
       [&] {
         (void)square.permute({1, 0});
       }},
  });
}

TEST(HelpFollowed, OfSpansAndRoutes) {
  const Storage square = zeros({4, 4}, DType::f32, "cpu");
  const Storage other = square.clone();
  RouteEnd end{.device = "cpu", .dtype = DType::f32, .shape = {4, 4}, .strides = {4, 1}};
  follow({
      {"use smaller strides",
       [&] {
         StridedSpan far = square.span();
         far.strides = Strides{INT64_MAX / 8, 1};
         copy(far, other.span());
       },
       [&] {
         StridedSpan near = square.span();
         near.strides = Strides{1, 4};
         copy(near, other.span());
       }},
      {"use smaller strides",
       [&] {
         StridedSpan far = square.span();
         far.strides = Strides{-(std::int64_t{1} << 50), 1};  // below address 0
         copy(far, other.span());
       },
       [&] { copy(square.span(), other.span()); }},
      {"use smaller strides",
       [&] {
         RouteEnd far = end;
         far.strides = Strides{INT64_MAX / 8, 1};
         (void)plan_route(far, end);
       },
       [&] { (void)plan_route(end, end); }},
      {"use pieces of a few megabytes", [&] { (void)plan_route(end, end, {.piece_bytes = 0}); },
       [&] { (void)plan_route(end, end, {.piece_bytes = 4_MiB}); }},
  });
}

// A tensor as another framework would make it.
struct Foreign {
  std::vector<float> values = std::vector<float>(4);
  std::vector<std::int64_t> shape = {4};
  std::vector<std::int64_t> strides = {1};
  dlpack::ManagedTensorVersioned managed{};

  Foreign() {
    managed.version = {1, 1};
    managed.dl_tensor = {values.data(), {dlpack::kCpu, 0}, 1, {dlpack::kFloat, 32, 1}, shape.data(), strides.data(), 0};
  }
};

TEST(HelpFollowed, OfForeignTensors) {
  const auto taken = [](void (*change)(Foreign&)) {
    return [change] {
      Foreign foreign;
      change(foreign);
      (void)from_dlpack(DlpackTensor(&foreign.managed));
    };
  };
  const auto as_it_should_be = taken([](Foreign&) {});
  follow({
      {"convert it in the framework it comes from", taken([](Foreign& f) {
         f.managed.dl_tensor.dtype = {dlpack::kFloat, 32, 4};
       }),
       as_it_should_be},
      {"the exporter is at fault: check its version", taken([](Foreign& f) { f.managed.dl_tensor.ndim = -1; }), as_it_should_be},
      {"copy it to the host in the framework it comes from", taken([](Foreign& f) {
         f.managed.dl_tensor.device = {dlpack::kExtension, 0};
       }),
       as_it_should_be},
      {"merge dimensions first", taken([](Foreign& f) {
         f.shape.assign(kMaxRank + 1, 1);
         f.strides.assign(kMaxRank + 1, 1);
         f.managed.dl_tensor.ndim = static_cast<std::int32_t>(kMaxRank + 1);
         f.managed.dl_tensor.shape = f.shape.data();
         f.managed.dl_tensor.strides = f.strides.data();
       }),
       as_it_should_be},
  });
}

}  // namespace
}  // namespace berth::testing
