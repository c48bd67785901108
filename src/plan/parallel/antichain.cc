// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/allowance.h"
#include "plan/parallel/conflicts.h"

namespace berth::internal::plan::parallel {

namespace {

constexpr std::size_t kMostWords = std::size_t{1} << 31;  // of bit sets looked through: a second or two

using Bits = std::vector<std::uint64_t>;

void put(Bits& bits, std::size_t i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }
void drop(Bits& bits, std::size_t i) { bits[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }

// The flow of a transport problem: every buffer sends its bytes to buffers after it, and receives as many from
// buffers before it. What cannot be sent is the weight of the heaviest antichain (Dilworth's theorem with weights).
// Dinic's algorithm; arcs to later buffers have no limit and are not stored: they are the pairs without a conflict.
class ChainCover {
 public:
  ChainCover(const Conflicts& conflicts, const std::vector<PackBuffer>& buffers)
      : conflicts_(conflicts), count_(conflicts.size()), words_((count_ + 63) / 64), sources_(count_), came_(count_) {
    for (std::size_t i = 0; i < count_; ++i) sources_[i] = buffers[conflicts.buffer(i)].bytes;
    sinks_ = sources_;
  }

  // Returns whether it came to its end.
  bool run() {
    while (label()) {
      for (std::size_t i = 0; i < count_; ++i)
        while (sources_[i] != 0 && send(i)) {
        }
      if (looks_ > kMostWords) return false;
      base::checkpoint_now();
    }
    return true;
  }

  // REQUIRES: run() came to its end, so that the labels are those of a search that did not reach a sink.
  std::vector<std::size_t> antichain() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < count_; ++i)
      if (sender_level_[i] != kNone && receiver_level_[i] == kNone) out.push_back(i);
    return out;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Flow {
    std::size_t from;
    std::size_t bytes;
  };

  // Calls see(b) for each later buffer without a conflict with `a` that is in `among`, until it says true.
  template <class See>
  bool each_after(std::size_t a, const Bits& among, See see) {
    looks_ += words_ - a / 64;
    for (std::size_t word = a / 64; word < words_; ++word) {
      std::uint64_t bits = among[word] & ~conflicts_.row(a)[word];
      if (word == a / 64) bits &= ~std::uint64_t{0} << (a % 64) << 1;
      for (; bits != 0; bits &= bits - 1)
        if (see(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)))) return true;
    }
    return false;
  }

  // Breadth first from all that can still send. Returns whether one that can still receive was reached.
  bool label() {
    sender_level_.assign(count_, kNone);
    receiver_level_.assign(count_, kNone);
    at_level_.clear();
    Bits unseen(words_);
    std::vector<std::size_t> senders;
    for (std::size_t i = 0; i < count_; ++i) {
      put(unseen, i);
      if (sources_[i] == 0) continue;
      sender_level_[i] = 0;
      senders.push_back(i);
    }
    bool reached = false;
    for (std::uint32_t level = 0; !senders.empty() && !reached; ++level) {
      std::vector<std::size_t> receivers;
      for (const std::size_t a : senders)
        each_after(a, unseen, [&](std::size_t b) {
          drop(unseen, b);
          receiver_level_[b] = level;
          receivers.push_back(b);
          reached |= sinks_[b] != 0;
          return false;
        });
      at_level_.emplace_back(words_);
      for (const std::size_t b : receivers) put(at_level_.back(), b);
      senders.clear();
      for (const std::size_t b : receivers)
        for (const Flow& flow : came_[b])
          if (sender_level_[flow.from] == kNone) {
            sender_level_[flow.from] = level + 1;
            senders.push_back(flow.from);
          }
    }
    return reached;
  }

  // A step of a path: a sender, the receiver that it sends to, and the flow of that receiver that is taken back,
  // by its position.
  struct Step {
    std::size_t sender;
    std::size_t receiver = 0;
    std::size_t taken = 0;
  };

  // Sends bytes along one path of labels. Returns whether there was one.
  bool send(std::size_t source) {
    std::vector<Step> path = {{source}};
    while (!path.empty()) {
      Step& top = path.back();
      const std::uint32_t level = sender_level_[top.sender];
      const bool found = level < at_level_.size() && each_after(top.sender, at_level_[level], [&](std::size_t b) {
                           top.receiver = b;
                           return true;
                         });
      if (!found) {
        sender_level_[top.sender] = kNone;  // a dead end
        path.pop_back();
        continue;
      }
      if (sinks_[top.receiver] != 0) {
        move(path);
        return true;
      }
      if (!go_back(top)) {
        drop(at_level_[level], top.receiver);  // a dead end
        continue;
      }
      path.push_back({came_[top.receiver][top.taken].from});
    }
    return false;
  }

  // Finds a sender of the next level whose flow to the receiver could go elsewhere.
  bool go_back(Step& step) const {
    const std::vector<Flow>& flows = came_[step.receiver];
    const std::uint32_t next = receiver_level_[step.receiver] + 1;
    for (step.taken = 0; step.taken < flows.size(); ++step.taken)
      if (sender_level_[flows[step.taken].from] == next) return true;
    return false;
  }

  void move(const std::vector<Step>& path) {
    std::size_t bytes = std::min(sources_[path.front().sender], sinks_[path.back().receiver]);
    for (std::size_t i = 0; i + 1 < path.size(); ++i) bytes = std::min(bytes, came_[path[i].receiver][path[i].taken].bytes);
    sources_[path.front().sender] -= bytes;
    sinks_[path.back().receiver] -= bytes;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) came_[path[i].receiver][path[i].taken].bytes -= bytes;
    for (const Step& step : path) {
      std::vector<Flow>& flows = came_[step.receiver];
      std::erase_if(flows, [](const Flow& flow) { return flow.bytes == 0; });
      const auto known = std::ranges::find(flows, step.sender, &Flow::from);
      if (known == flows.end())
        flows.push_back({step.sender, bytes});
      else
        known->bytes += bytes;
    }
  }

  const Conflicts& conflicts_;
  const std::size_t count_;
  const std::size_t words_;
  std::vector<std::size_t> sources_;  // what each can still send
  std::vector<std::size_t> sinks_;    // what each can still receive
  std::vector<std::vector<Flow>> came_;
  std::vector<std::uint32_t> sender_level_;
  std::vector<std::uint32_t> receiver_level_;
  std::vector<Bits> at_level_;  // the receivers of each level that are no dead ends
  std::size_t looks_ = 0;
};

// The buffers that are live at the step of the graph's order at which most bytes are.
std::vector<std::size_t> live_at_peak(const Conflicts& conflicts, const std::vector<PackBuffer>& buffers) {
  std::vector<std::pair<NodeId, std::size_t>> changes;  // differences may wrap, prefix sums do not
  for (std::size_t i = 0; i < conflicts.size(); ++i) {
    const PackBuffer& one = buffers[conflicts.buffer(i)];
    changes.emplace_back(one.begin, one.bytes);
    changes.emplace_back(one.end, std::size_t{0} - one.bytes);
  }
  std::ranges::stable_sort(changes, {}, &std::pair<NodeId, std::size_t>::first);
  std::size_t live = 0;
  std::size_t most = 0;
  NodeId step = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    live += changes[i].second;
    if ((i + 1 < changes.size() && changes[i + 1].first == changes[i].first) || live <= most) continue;
    most = live;
    step = changes[i].first;
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < conflicts.size(); ++i)
    if (const PackBuffer& one = buffers[conflicts.buffer(i)]; one.begin <= step && step < one.end) out.push_back(i);
  return out;
}

}  // namespace

Antichain heaviest_antichain(const Conflicts& conflicts, const std::vector<PackBuffer>& buffers) {
  ChainCover cover(conflicts, buffers);
  Antichain out;
  out.is_heaviest = cover.run();
  for (const std::size_t i : out.is_heaviest ? cover.antichain() : live_at_peak(conflicts, buffers)) {
    out.buffers.push_back(conflicts.buffer(i));
    out.bytes += buffers[conflicts.buffer(i)].bytes;
  }
  return out;
}

}  // namespace berth::internal::plan::parallel
