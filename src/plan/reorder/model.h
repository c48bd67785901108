// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/plan/graph.h"
#include "plan/lives.h"

// The scheduling model of a graph: units that run one after another, and the storages that they make and read.
// It is approximate: values that may use the same bytes are taken to do so, and bytes of all devices count
// alike. The actual peak of an order is found by packing it.
namespace berth::internal::plan {

using UnitId = std::uint32_t;
using StorageId = std::uint32_t;

inline constexpr UnitId kNoUnit = UINT32_MAX;

// Lists of numbers in one contiguous array (compressed sparse rows).
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

// Transposes: lists of b for each a become lists of a for each b below `count`.
Lists turned(const Lists& lists, std::size_t count);

// A node that reads no value of the graph and has no side effects is not a unit but a source: it runs just
// before the first unit that reads one of its values. No order is better with it anywhere else: its bytes are
// needed at that unit anyway, and are not live before.
struct OrderModel {
  struct Storage {
    std::size_t bytes = 0;
    bool survives = false;  // needed after the last node
    bool of_source = false;
  };

  NodeRange nodes = {};
  std::vector<NodeId> node_of;    // of each unit; ascending, so that units are in graph order
  std::vector<NodeId> source_of;  // the node of each source
  std::vector<Storage> storages;
  Lists makes;           // by unit: storages
  Lists reads;           // by unit: storages, unique
  Lists readers;         // by storage: units
  Lists sources;         // by unit: the sources it reads from
  Lists source_readers;  // by source: units
  Lists source_makes;    // by source: storages
  Lists before;          // by unit: direct predecessors
  Lists after;           // by unit: direct successors
  Lists in_place;        // by unit: pairs of a storage that it makes and one it reads, which may be reused in
                         // place

  std::size_t units() const noexcept { return node_of.size(); }
};

// REQUIRES: the graph is valid, `lives` are the lifetimes of the range. `reuse`: take options into account.
OrderModel make_order_model(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool reuse);

// The nodes in the order of the units, each source before the first unit that reads it, and unread sources at
// the end.
std::vector<NodeId> nodes_in_order(const OrderModel& model, std::span<const UnitId> units);

}  // namespace berth::internal::plan
