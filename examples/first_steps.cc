// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <vector>

#include "berth/berth.h"

using namespace berth;

int main() {
  // Six floats on the host, and a view that shows them in another order. The view moves no bytes.
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Storage x = from_data(values, {2, 3}, "cpu");
  const Storage columns = x.transpose(0, 1);
  std::cout << inspect(x) << '\n' << inspect(columns) << '\n';

  // Convert, and copy to a device whose memory the host cannot access.
  const Storage there = columns.to(DType::bf16).to("sim:0");
  std::cout << inspect(there) << '\n';

  // Copy back into part of a larger storage, converted on the way.
  const Storage batch = zeros({4, 3, 2}, DType::f32, "cpu");
  batch.select(0, 1).copy_from(there);
  const bool came_back = equal(batch.select(0, 1), columns);

  // An allocator with a limit. The error reports who holds the memory and how much more would be enough.
  const auto memory = limit(direct("cpu"), 1_MiB);
  const Storage weights = empty({768, 256}, DType::f32, memory, {.tag = "weights"});
  bool answered = false;
  try {
    const Storage more = empty({512, 256}, DType::f32, memory, {.tag = "activations"});
  } catch (const OutOfMemory& error) {
    std::cout << error.report().to_string();
    answered = error.report().would_be_enough_bytes == 256_KiB;
  }

  return came_back && answered ? 0 : 1;
}
