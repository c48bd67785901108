// SPDX-License-Identifier: Apache-2.0
// For users of a per-device allocator interface (allocate, release, memcpy with a kind, memset_zero) and a
// buffer that frees itself. Each part shows their call in a comment and berth's below it. "sim:0" stands in for
// "cuda:0": the host cannot access its memory either.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "berth/berth.h"
#include "berth/observe.h"
#include "expect.h"

using namespace berth;

namespace {

// CPUDeviceAllocatorFactory::get_instance(), CUDADeviceAllocatorFactory::get_instance()
void one_allocator_per_device() {
  const std::shared_ptr<Allocator>& host = default_allocator("cpu");
  const std::shared_ptr<Allocator>& device = default_allocator("sim:0");
  expect(host == default_allocator("cpu") && host != device, "one allocator for each device, made when first asked for");
  expect(device->device() == "sim:0", "an allocator knows its device");
}

// void* p = allocator->allocate(byte_size);   allocator->release(p);
void allocate_and_release() {
  const auto memory = track(direct("sim:0"));
  // Throws OutOfMemory; theirs returns null.
  const Block block = memory->allocate({.bytes = 1000, .tag = "kv"});
  expect(block.data != nullptr && memory->stats().in_use_bytes == 1000, "allocate gives a block: address, size, device, tag");
  memory->deallocate(block);

  void* const bare = memory->allocate({.bytes = 64}).data;
  memory->deallocate(memory->block_at(bare, 64));  // for code that keeps raw pointers, and knows the size
  memory->deallocate({});                          // no-op, as release(nullptr)
  expect(memory->live().empty(), "release is deallocate");

  const auto small = limit(direct("sim:0"), 1_MiB);
  expect(!small->try_allocate({.bytes = 2_MiB}), "try_allocate says no instead of throwing, where theirs returns null");
}

// allocator->memcpy(src, dest, byte_size, MemcpyKind::kMemcpyCPU2CUDA, stream, need_sync);
// berth's order is target, source; the direction follows from the two devices.
void copy_with_direction() {
  std::vector<float> source(256);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i) / 2;
  std::vector<float> target(source.size());
  const std::size_t bytes = source.size() * sizeof(float);
  const Buffer a = make_buffer(bytes, "sim:0");
  const Buffer b = make_buffer(bytes, "sim:0");

  copy_bytes(a.data(), "sim:0", source.data(), "cpu", bytes);  // CPU2CUDA
  copy_bytes(b.data(), "sim:0", a.data(), "sim:0", bytes);     // CUDA2CUDA
  copy_bytes(target.data(), "cpu", b.data(), "sim:0", bytes);  // CUDA2CPU
  expect(target == source, "to the device, within it, and back: done on return");

  std::vector<float> again(source.size());
  copy_bytes(again.data(), "cpu", target.data(), "cpu", bytes);  // CPU2CPU
  expect(again == source, "within the host");
}

// memcpy(..., stream, need_sync) and memset_zero(ptr, byte_size, stream, need_sync)
void copy_and_zero_in_a_stream() {
  std::vector<float> source(256, 1.5F);
  std::vector<float> target(source.size(), 7.0F);
  const std::size_t bytes = source.size() * sizeof(float);
  const Buffer a = make_buffer(bytes, "sim:0");
  const Stream stream = make_stream("sim:0");

  copy_bytes(a.data(), "sim:0", source.data(), "cpu", bytes, {.stream = stream});  // need_sync = true
  // need_sync = false: returns at once, and the event tells when it is done. The caller keeps raw pointers
  // valid until then.
  const Event copied = copy_bytes(target.data(), "cpu", a.data(), "sim:0", bytes, {.stream = stream, .non_blocking = true});
  copied.wait();
  expect(target == source, "in a stream, waited for or not");

  fill_bytes(a.data(), "sim:0", 0, bytes, {.stream = stream, .non_blocking = true});
  // After the fill: a stream runs in order.
  copy_bytes(target.data(), "cpu", a.data(), "sim:0", bytes, {.stream = stream});
  expect(target == std::vector<float>(target.size()), "memset_zero is fill_bytes with 0");
}

// Buffer(byte_size, allocator)   Buffer(byte_size, nullptr, ptr, true)
// buffer.ptr()   byte_size()   is_external()
void buffers_that_free_themselves() {
  const auto memory = track(direct("cpu"));
  {
    const Buffer owned = make_buffer(4096, memory);  // allocated at once: there is no allocate() to forget
    expect(owned.data() != nullptr && owned.size_bytes() == 4096 && !owned.is_external(), "an owned buffer");
    expect(owned.device() == "cpu" && owned.allocator() == memory.get(), "it knows its device and its allocator");
    expect(memory->live().size() == 1, "and holds one block");
  }
  expect(memory->live().empty(), "which goes back when the last handle is gone");

  float local[4] = {1, 2, 3, 4};
  const Buffer borrowed = wrap_buffer(local, sizeof local, "cpu");
  expect(borrowed.is_external() && borrowed.data() == local, "use_external: borrowed, never freed by berth");

  bool freed = false;
  {
    void* const theirs = std::malloc(64);
    const Buffer adopted = wrap_buffer(theirs, 64, "cpu", [&freed](void* data) {
      std::free(data);
      freed = true;
    });
  }
  expect(freed, "external memory with a deleter is adopted, and given back once");
}

// buffer.copy_from(other), which picks the kind from the two device types
void copy_between_buffers() {
  float values[4] = {1, 2, 3, 4};
  float returned[4] = {};
  const Buffer source = wrap_buffer(values, sizeof values, "cpu");
  Buffer there = make_buffer(sizeof values, "sim:0");
  Buffer back = wrap_buffer(returned, sizeof returned, "cpu");
  there.copy_from(source);
  back.copy_from(there);
  expect(std::memcmp(values, returned, sizeof values) == 0, "copy_from works between any two devices");

  there.fill(0);
  back.copy_from(there);
  expect(returned[3] == 0, "fill(0) zeroes a buffer");

  bool refused = false;
  try {
    there.copy_from(make_buffer(8, "cpu"));
  } catch (const ArgumentError& error) {
    refused = error.code() == ErrorCode::size_mismatch;
  }
  expect(refused, "unequal sizes are an error; theirs copies the smaller of the two");
}

}  // namespace

int main() {
  one_allocator_per_device();
  allocate_and_release();
  copy_with_direction();
  copy_and_zero_in_a_stream();
  buffers_that_free_themselves();
  copy_between_buffers();
  return g_right ? 0 : 1;
}
