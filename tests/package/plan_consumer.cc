// SPDX-License-Identifier: Apache-2.0
#include <berth/plan.h>

#include <cstdio>

// A program outside the tree that plans a graph: two values of 64 bytes that are live at the same time.
int main() {
  const berth::Graph graph = berth::read_lives_csv("id,lower,upper,size\na,0,2,64\nb,1,3,64\nc,2,4,64\n");
  std::printf("a stranger's plan: %zu bytes\n", berth::plan(graph).peak_bytes());
}
