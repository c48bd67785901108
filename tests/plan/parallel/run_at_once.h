// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "berth/plan/plan.h"

// Runs a parallel plan on plain memory as an executor would: threads take nodes as soon as all before them are done,
// at random; each node reads its inputs, compares every byte, and writes its outputs.
namespace berth::testing {

using namespace internal::base;

class RunAtOnce {
 public:
  RunAtOnce(const Plan& plan, std::uint64_t seed) : plan_(plan), graph_(plan.graph()), random_(seed), expected_(graph_.values.size()) {
    for (const PlanArena& arena : plan.tables().arenas) arenas_.emplace_back(arena.bytes);
    const NodeRange nodes = plan.tables().nodes;
    waits_.resize(nodes.end);
    after_.resize(nodes.end);
    std::vector<NodeId> writer(graph_.values.size(), UINT32_MAX);
    for (NodeId n = nodes.begin; n < nodes.end; ++n) {
      each_input(n, [&](ValueId v) {
        if (writer[v] != UINT32_MAX) add_wait(writer[v], n);
      });
      for (const ValueId v : graph_.nodes[n].outputs)
        if (v != kNoValue) writer[v] = n;
    }
    for (const PlanEdge& edge : plan.tables().edges) add_wait(edge.before, edge.after);
    for (NodeId n = nodes.begin; n < nodes.end; ++n)
      if (waits_[n] == 0) ready_.push_back(n);
    left_ = nodes.end - nodes.begin;
  }

  // Returns what went wrong; empty when nothing did.
  std::string run(std::size_t threads) {
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back([this] { work(); });
    work();
    for (std::thread& one : others) one.join();
    for (ValueId v = 0; v < expected_.size(); ++v)
      if (survives(v)) check(v, "the caller");
    return wrong_;
  }

 private:
  using Bytes = std::vector<unsigned char>;

  template <class See>
  void each_input(NodeId n, See see) const {
    const GraphNode& node = graph_.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue && std::ranges::find(node.ignored_inputs, i) == node.ignored_inputs.end()) see(node.inputs[i]);
  }

  void add_wait(NodeId before, NodeId after) {
    ++waits_[after];
    after_[before].push_back(after);
  }

  bool survives(ValueId v) const {
    bool read_later = graph_.values[v].output;
    for (NodeId n = plan_.tables().nodes.end; n < graph_.nodes.size(); ++n) each_input(n, [&](ValueId input) { read_later |= input == v; });
    return read_later && plan_.location(v).planned();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (left_ != 0) {
      if (ready_.empty()) {
        changed_.wait(lock);
        continue;
      }
      std::swap(ready_[random_.below(ready_.size())], ready_.back());
      const NodeId n = ready_.back();
      ready_.pop_back();
      --left_;
      lock.unlock();
      each_input(n, [&](ValueId v) { check(v, graph_.describe_node(n)); });
      for (std::uint32_t o = 0; o < graph_.nodes[n].outputs.size(); ++o) write(n, o);
      lock.lock();
      for (const NodeId next : after_[n])
        if (--waits_[next] == 0) ready_.push_back(next);
      changed_.notify_all();
    }
  }

  unsigned char* bytes_of(ValueId v) { return arenas_[graph_.values[v].device].data() + plan_.location(v).offset; }

  void check(ValueId v, const std::string& reader) {
    if (!plan_.location(v).planned() || expected_[v].empty()) return;
    if (std::memcmp(bytes_of(v), expected_[v].data(), expected_[v].size()) == 0) return;
    const std::lock_guard lock(mutex_);
    if (wrong_.empty()) wrong_ = reader + " reads " + graph_.describe_value(v) + " and finds other bytes";
  }

  void write(NodeId n, std::uint32_t o) {
    const ValueId v = graph_.nodes[n].outputs[o];
    if (v == kNoValue || !plan_.location(v).planned()) return;
    const ValueLocation& location = plan_.location(v);
    Bytes bytes(*graph_.values[v].size_bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(v * 37 + i * 11 + 1);
    if (location.reuse == Reuse::identity || location.reuse == Reuse::view) {
      const Bytes& whole = expected_[location.with];
      const auto from = whole.begin() + static_cast<std::ptrdiff_t>(location.offset - plan_.location(location.with).offset);
      bytes.assign(from, from + static_cast<std::ptrdiff_t>(bytes.size()));
    } else {
      std::vector<bool> kept(bytes.size(), false);
      if (location.reuse == Reuse::joined) keep_inputs(n, o, v, bytes, kept);
      for (std::size_t i = 0; i < bytes.size(); ++i)
        if (!kept[i]) bytes_of(v)[i] = bytes[i];
    }
    expected_[v] = std::move(bytes);
  }

  void keep_inputs(NodeId n, std::uint32_t o, ValueId v, Bytes& bytes, std::vector<bool>& kept) const {
    const GraphNode& node = graph_.nodes[n];
    for (const ViewOption& option : node.views) {
      const ValueId input = node.inputs[option.input];
      if (option.of_input || option.output != o || std::ranges::find(node.ignored_inputs, option.input) != node.ignored_inputs.end())
        continue;
      if (!plan_.location(input).planned() || plan_.location(input).buffer != plan_.location(v).buffer ||
          plan_.location(input).offset != plan_.location(v).offset + option.offset_bytes)
        continue;
      for (std::size_t i = 0; i < expected_[input].size(); ++i) {
        bytes[option.offset_bytes + i] = expected_[input][i];
        kept[option.offset_bytes + i] = true;
      }
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Random random_;
  std::vector<NodeId> ready_;
  std::size_t left_ = 0;  // nodes that no thread has taken
  std::vector<std::size_t> waits_;
  std::vector<std::vector<NodeId>> after_;
  std::vector<Bytes> expected_;  // of each value; written by its writer, read by nodes after it
  std::vector<Bytes> arenas_;
  std::string wrong_;
};

}  // namespace berth::testing
