// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

// Nodes of one type at fixed addresses, each with an index. Taking one never fails after a successful
// `reserve`, so that a structure can reserve its memory before it changes anything. Not thread-safe: its owner
// locks.
namespace berth::internal::memory {

template <class Node>
class NodePool {
 public:
  // Makes sure that `count` nodes can be taken. False, with nothing changed, when there is no heap.
  bool reserve(std::size_t count) noexcept {
    while (free_.size() < count) {
      if (!grow()) return false;
    }
    return true;
  }

  // A fresh node. REQUIRES: reserved.
  Node* take() noexcept {
    Node* const node = free_.back();
    free_.pop_back();
    const std::uint32_t index = node->index;
    *node = Node{};
    node->index = index;
    return node;
  }

  // Room for every node was reserved when it was made.
  void give_back(Node* node) noexcept { free_.push_back(node); }

  Node* at(std::uint32_t index) const noexcept { return index < made_ ? &chunks_[index / kChunk][index % kChunk] : nullptr; }
  std::size_t used() const noexcept { return made_ - free_.size(); }
  std::size_t bytes() const noexcept { return made_ * (sizeof(Node) + sizeof(Node*)); }

 private:
  static constexpr std::size_t kChunk = 256;

  bool grow() noexcept {
    try {
      free_.reserve(made_ + kChunk);
      chunks_.reserve(chunks_.size() + 1);
      chunks_.push_back(std::make_unique<Node[]>(kChunk));
    } catch (const std::bad_alloc&) {
      return false;
    }
    for (std::size_t i = kChunk; i-- > 0;) {
      Node* const node = &chunks_.back()[i];
      node->index = static_cast<std::uint32_t>(made_ + i);
      free_.push_back(node);
    }
    made_ += kChunk;
    return true;
  }

  std::size_t made_ = 0;  // free_.capacity() >= made_
  std::vector<std::unique_ptr<Node[]>> chunks_;
  std::vector<Node*> free_;
};

}  // namespace berth::internal::memory
