// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/memory/allocator.h"

// The common base of all adaptors, which forwards every call to the allocator it wraps. `Interface` is
// Allocator or a public class derived from it; an adaptor overrides what it changes. Any thread, as for
// Allocator.
namespace berth::internal::memory {

template <class Interface>
class Adaptor : public Interface {
 public:
  Adaptor(const char* kind, std::shared_ptr<Allocator> upstream)
      : Interface(checked(kind, upstream).backend()), upstream_(std::move(upstream)), kind_(kind) {}

  using When = Allocator::When;

  Status obtain(const Request& request, Block& block) noexcept override { return upstream_->obtain(request, block); }
  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override { return upstream_->give_back(block, when, known); }
  bool grow(Block& block, std::size_t bytes) noexcept override { return upstream_->grow(block, bytes); }
  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override { return upstream_->note_use(block, stream); }
  Result<bool> locate(Block& block) noexcept override { return upstream_->locate(block); }
  void trim(std::size_t keep_bytes) override { upstream_->trim(keep_bytes); }
  void trim_idle() override { upstream_->trim_idle(); }
  void reserve(std::size_t bytes) override { upstream_->reserve(bytes); }
  void begin_hold() noexcept override { upstream_->begin_hold(); }
  void end_hold() noexcept override { upstream_->end_hold(); }
  Stats stats() const override { return upstream_->stats(); }
  std::vector<Holder> holders() const override { return upstream_->holders(); }
  std::span<const std::byte> range() const noexcept override { return upstream_->range(); }
  std::string name() const override { return text::join(std::string_view(kind_), '(', upstream_->name(), ')'); }
  std::string settings() const override { return text::join(std::string_view(kind_), " over ", upstream_->settings()); }
  void list_blocks(Snapshot& snapshot) const override { upstream_->list_blocks(snapshot); }
  void explain(const Failure& failure, OutOfMemoryReport& report) const override { upstream_->explain(failure, report); }
  void explain_free(const Block& block, Misuse& misuse) const noexcept override { upstream_->explain_free(block, misuse); }
  std::string audit() const override { return upstream_->audit(); }

 protected:
  const std::shared_ptr<Allocator> upstream_;
  const char* const kind_;  // a literal: "limit"

 private:
  static Allocator& checked(const char* kind, const std::shared_ptr<Allocator>& upstream) {
    if (upstream != nullptr) return *upstream;
    throw ArgumentError(ErrorCode::invalid_argument, {text::join("making a ", std::string_view(kind), " adaptor"),
                                                      "there is no allocator to wrap", "pass one, such as direct(\"cpu\")"});
  }
};

}  // namespace berth::internal::memory
