// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "support/everything.h"
#include "support/scale.h"

// Random and mutated input for everything that reads text or layouts from outside. Whatever the input, the
// result is a value or an Error.
namespace berth::testing {

using namespace internal;
namespace {

std::string mutate(Random& random, std::string text) {
  const std::uint64_t changes = 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes; ++i) {
    const auto at = static_cast<std::size_t>(random.below(text.size() + 1));
    switch (random.below(4)) {
      case 0: text.insert(at, 1, static_cast<char>(random.below(256))); break;
      case 1:
        if (at < text.size()) text.erase(at, 1 + random.below(3));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      default: text += text.substr(0, at); break;
    }
  }
  return text;
}

template <class Parse>
void survives(Parse parse, const std::vector<std::string>& seeds) {
  Random random(seed());
  const std::uint64_t runs = scaled(1'000'000, 1000);
  std::uint64_t accepted = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::string input = mutate(random, seeds[random.below(seeds.size())]);
    try {
      parse(input);
      ++accepted;
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()), "");
      ASSERT_TRUE(nlohmann::json::accept(to_json(error))) << "an error about any input is valid JSON";
    }
  }
  did(std::to_string(runs) + " inputs, " + std::to_string(accepted) + " accepted");
}

TEST(Fuzz, DeviceNames) {
  survives([](const std::string& s) { EXPECT_FALSE(Device(s).to_string().empty()); }, {"cpu", "cpu:0", "sim:12", "cuda:65535", "pinned:0"});
}

TEST(Fuzz, DTypeNames) {
  survives([](const std::string& s) { (void)parse_dtype(s); }, {"f32", "bfloat16", "float8_e4m3fn", "<f4", "bool", "C128"});
}

TEST(Fuzz, ByteCounts) {
  survives(
      [](const std::string& s) {
        std::uint64_t bytes = 0;
        (void)text::parse_bytes(s, bytes);
        (void)text::printable(s);
      },
      {"4096", "64KiB", "1.5 GiB", "99999999999999999999", "0.0001", "2M"});
}

TEST(Fuzz, JsonOfAnyName) {
  survives(
      [](const std::string& s) {
        JsonWriter json;
        json.begin_object().member(s, s).end_object();
        ASSERT_TRUE(nlohmann::json::accept(json.take()));
      },
      {"name", "\xc3\xa9", "\xf0\x9f\x98\x80", "\x1b[0m", "\"\\"});
}

std::string small_binary_trace() {
  const std::string path = std::string(::testing::TempDir()) + "berth_fuzz_" + std::to_string(seed()) + "_" + std::to_string(getpid());
  const auto memory = direct("cpu");
  const auto other = direct("cpu");
  std::vector<Block> kept;
  start_trace(path);
  for (std::size_t i = 1; i < 20; ++i) {
    const Block block = memory->allocate({.bytes = i * 1000});
    other->deallocate(other->allocate({.bytes = i}));
    if (i % 3 != 0)
      memory->deallocate(block);
    else
      kept.push_back(block);
  }
  stop_trace();
  for (const Block& block : kept) memory->deallocate(block);
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::remove(path.c_str());
  return bytes.str();
}

TEST(Fuzz, Traces) {
  const auto plan = [](const std::string& s) {
    const ReplayScript script = plan_replay(read_trace(s).events);
    ASSERT_LE(script.blocks, script.steps.size());
  };
  survives(plan, {"a,1,100,0\nf,1,0,0\n", "op,id,bytes,stream\r\na,1,8,2\r\na,2,8,3\r\n"});
  survives(plan, {small_binary_trace()});
}

// A DLPack tensor whose every number is random or an extreme.
TEST(Fuzz, DlpackTensors) {
  Random random(seed());
  const std::vector<std::int64_t> extremes = {0, 1, -1, 2, 3, 64, 65, INT64_MAX, INT64_MIN, INT64_MAX / 2, 1LL << 32};
  const auto number = [&] {
    return random.one_in(3) ? extremes[random.below(extremes.size())] : static_cast<std::int64_t>(random.below(6)) - 1;
  };
  std::vector<float> memory(4096);
  const std::uint64_t runs = scaled(1'000'000, 1000);
  std::uint64_t accepted = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    std::int64_t shape[8];
    std::int64_t strides[8];
    for (int axis = 0; axis < 8; ++axis) {
      shape[axis] = number();
      strides[axis] = number();
    }
    int deleted = 0;
    dlpack::ManagedTensorVersioned managed{};
    managed.version = {random.one_in(20) ? 2U : 1U, 1};
    managed.manager_ctx = &deleted;
    managed.deleter = [](dlpack::ManagedTensorVersioned* self) { ++*static_cast<int*>(self->manager_ctx); };
    managed.flags = random.next();
    managed.dl_tensor = {random.one_in(10) ? nullptr : memory.data() + 2048,
                         {static_cast<std::int32_t>(random.below(15)), static_cast<std::int32_t>(random.below(3)) - 1},
                         static_cast<std::int32_t>(random.below(10)) - 1,
                         {static_cast<std::uint8_t>(random.below(20)), static_cast<std::uint8_t>(8U << random.below(5)), 1},
                         random.one_in(20) ? nullptr : shape,
                         random.one_in(4) ? nullptr : strides,
                         random.one_in(10) ? random.next() : 0};
    if (random.one_in(2)) {
      managed.dl_tensor.device = {dlpack::kCpu, 0};
      managed.dl_tensor.dtype = {dlpack::kFloat, 32, 1};
    }
    if (managed.dl_tensor.ndim > 8) managed.dl_tensor.ndim = 100;
    {
      try {
        const Storage x = from_dlpack(DlpackTensor(&managed));
        ++accepted;
        ASSERT_LE(x.num_elements(), static_cast<std::size_t>(INT64_MAX));
        (void)to_json(inspect(x));
        // What it reaches inside the given memory can be read.
        const auto low = reinterpret_cast<std::uintptr_t>(memory.data());
        const auto begin = reinterpret_cast<std::uintptr_t>(x.buffer().data());
        const bool ours =
            begin >= low && x.buffer().size_bytes() <= 4 * memory.size() && begin - low <= 4 * memory.size() - x.buffer().size_bytes();
        if (ours && x.num_elements() < 10000 && x.device() == Device()) (void)x.clone();
        ASSERT_EQ(deleted, 0);
      } catch (const Error&) {
        ASSERT_EQ(deleted, 1) << "a refused tensor is freed at once";
      }
    }
    ASSERT_EQ(deleted, 1) << "every tensor is freed exactly once";
  }
  did(std::to_string(runs) + " tensors, " + std::to_string(accepted) + " accepted");
}

}  // namespace
}  // namespace berth::testing
