// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/plan/graph.h"
#include "plan/lives.h"

// What ordering sees of a graph: units that run one after another, and the storages that they make and read. It is a model: values that may
// share bytes are taken to share them, and bytes of all devices count alike. What an order is really worth is found out by packing it.
namespace berth::internal::plan {

using UnitId = std::uint32_t;
using StorageId = std::uint32_t;

inline constexpr UnitId kNoUnit = UINT32_MAX;

// Lists of numbers, one after another in one array.
class Lists {
 public:
  std::span<const std::uint32_t> operator[](std::size_t list) const {
    return std::span(items_).subspan(begins_[list], begins_[list + 1] - begins_[list]);
  }
  std::size_t size() const noexcept { return begins_.size() - 1; }
  void add_list(std::span<const std::uint32_t> items);

 private:
  std::vector<std::uint32_t> items_;
  std::vector<std::size_t> begins_ = {0};
};

// Turns lists of b for each a into lists of a for each b below `count`.
Lists turned(const Lists& lists, std::size_t count);

// A node that reads nothing of the graph and has no side effects is no unit but a source: it runs just before the first unit that reads of
// it. No order is better with it anywhere else: its bytes are needed at that unit anyway, and are not there before.
struct OrderModel {
  struct Storage {
    std::size_t bytes = 0;
    bool survives = false;  // is needed after the last node
    bool of_source = false;
  };

  NodeRange nodes = {};
  std::vector<NodeId> node_of;    // of each unit; rising, so that units are in the order of the graph
  std::vector<NodeId> source_of;  // the node of each source
  std::vector<Storage> storages;
  Lists makes;           // by unit: storages
  Lists reads;           // by unit: storages, each once
  Lists readers;         // by storage: units
  Lists sources;         // by unit: the sources it reads of
  Lists source_readers;  // by source: units
  Lists source_makes;    // by source: storages
  Lists before;          // by unit: units that must have run
  Lists after;           // by unit: units that wait for it
  Lists in_place;        // by unit: pairs, a storage that it makes and one it reads, whose bytes that may take

  std::size_t units() const noexcept { return node_of.size(); }
};

// REQUIRES: the graph is valid, the lives are those of the range.
OrderModel make_order_model(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool share);

// The nodes in the order of the units, each source before the first unit that reads of it, and sources that nobody reads at the end.
std::vector<NodeId> nodes_in_order(const OrderModel& model, std::span<const UnitId> units);

}  // namespace berth::internal::plan
