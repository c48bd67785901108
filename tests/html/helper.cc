// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"

// Makes a pool with blocks of several tags and sizes, some of them freed again, plants one that is larger than
// all others, and saves a snapshot to the given file for the browser test. The second argument is one of the
// tags.
namespace {

using namespace berth;

std::vector<Block> load(Allocator& memory, const char* tag, std::size_t count, std::size_t bytes) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < count; ++i)
    blocks.push_back(memory.allocate({.bytes = bytes + i % 7 * (bytes / 8), .tag = tag, .site = Site::here()}));
  return blocks;
}

Block plant(Allocator& memory) { return memory.allocate({.bytes = 48_MiB, .tag = "planted", .site = Site::here()}); }

void drop_every_third(Allocator& memory, std::vector<Block>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); i += 3) memory.deallocate(std::exchange(blocks[i], Block{}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const Tracker tracker;  // for sites and ages
  const auto memory = pool("cpu");
  std::vector<std::vector<Block>> all;
  all.push_back(load(*memory, "weights", 24, 4_MiB));
  all.push_back(load(*memory, "kv", 60, 700'000));
  all.push_back(load(*memory, argv[2], 30, 20'000));
  const Block planted = plant(*memory);
  all.push_back(load(*memory, "activations", 40, 2_MiB));
  all.push_back(load(*memory, "", 200, 100));
  for (std::vector<Block>& blocks : all) drop_every_third(*memory, blocks);
  std::puts(save_snapshot(argv[1]).c_str());
  memory->deallocate(planted);
  for (const std::vector<Block>& blocks : all)
    for (const Block& block : blocks) memory->deallocate(block);
  return 0;
}
