// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/limit.h"

#include <algorithm>

#include "memory/adaptor.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

class Limit;

// The limits whose upstream this thread is calling, innermost first. A request that reenters one of them (from
// a callback) must not wait there for pending requests: one of those is its own.
struct Passing {
  const Limit* limit;
  const Passing* outer;
};
constinit thread_local const Passing* t_passing = nullptr;

class Limit : public Adaptor<Allocator> {
 public:
  Limit(std::shared_ptr<Allocator> upstream, std::size_t limit_bytes) : Adaptor("limit", std::move(upstream)), limit_bytes_(limit_bytes) {}

  Status obtain(const Request& request, Block& block) noexcept override {
    Status done = Failure{ErrorCode::out_of_memory, 0, "the limit", Refusal::limit};
    if (claim(request.bytes)) {
      const Passing here{this, t_passing};
      t_passing = &here;
      done = upstream_->obtain(request, block);
      t_passing = here.outer;
      settle(request.bytes, done.ok());
    }
    if (!done) count_refusal();
    return done;
  }

  bool grow(Block& block, std::size_t bytes) noexcept override {
    const std::size_t more = bytes - block.bytes;
    if (!claim(more)) return false;
    const Passing here{this, t_passing};
    t_passing = &here;
    const bool grown = upstream_->grow(block, bytes);
    t_passing = here.outer;
    settle(more, grown);
    return grown;
  }

  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override {
    const BlockVerdict freed = upstream_->give_back(block, when, known);
    if (freed != BlockVerdict::ok) return freed;
    {
      const os::Lock lock(mutex_);
      in_use_ -= std::min(in_use_, block.bytes);
    }
    changed_.notify_all();
    return freed;
  }

  // Upstream knows what is held; refusals are counted here, where most of them happen.
  Stats stats() const override {
    Stats all = upstream_->stats();
    const os::Lock lock(mutex_);
    all.failures = refused_;
    return all;
  }

  std::string settings() const override { return text::join("limit ", text::bytes(limit_bytes_), " over ", upstream_->settings()); }

  void explain(const Failure& failure, OutOfMemoryReport& report) const override {
    upstream_->explain(failure, report);
    const os::Lock lock(mutex_);
    if (failure.cause != Refusal::limit || report.limit_bytes != 0) return;  // an allocator below refused it
    report.refused_by = text::join("limit of ", text::bytes(limit_bytes_));
    report.limit_bytes = limit_bytes_;
    report.in_use_bytes = in_use_;
    report.would_be_enough_bytes = report.requested_bytes - std::min(report.requested_bytes, room());
    report.tried = {"nothing: a limit counts live blocks, and releasing cached memory frees none"};
  }

  std::string audit() const override {
    {
      const os::Lock lock(mutex_);
      if (in_use_ + pending_ > limit_bytes_) return "limit: in use + pending > limit";
    }
    return upstream_->audit();
  }

 private:
  // What the live blocks leave of the limit. (A child forked inside a request may count it twice, and so be
  // over its limit.)
  std::size_t room() const noexcept BERTH_REQUIRES(mutex_) { return limit_bytes_ - std::min(in_use_, limit_bytes_); }

  bool is_passing() const noexcept {
    for (const Passing* p = t_passing; p != nullptr; p = p->outer) {
      if (p->limit == this) return true;
    }
    return false;
  }

  bool claim(std::size_t bytes) noexcept {
    const os::Lock lock(mutex_);
    // In a forked child, pending requests stayed in the parent and never settle.
    if (pending_in_.is_inherited()) [[unlikely]] {
      pending_in_ = {};
      pending_ = 0;
    }
    while (true) {
      if (bytes <= room() - std::min(pending_, room())) {
        pending_ += bytes;
        return true;
      }
      if (bytes > room() || is_passing()) return false;
      changed_.wait(mutex_);
    }
  }

  void settle(std::size_t bytes, bool obtained) noexcept {
    {
      const os::Lock lock(mutex_);
      pending_ -= std::min(bytes, pending_);  // a child forked inside a request has reset it
      in_use_ += obtained ? bytes : 0;
    }
    changed_.notify_all();
  }

  void count_refusal() noexcept {
    const os::Lock lock(mutex_);
    ++refused_;
  }

  const std::size_t limit_bytes_;
  mutable os::Mutex mutex_;
  os::Condition changed_;
  std::size_t in_use_ BERTH_GUARDED_BY(mutex_) = 0;   // bytes of live blocks
  std::size_t pending_ BERTH_GUARDED_BY(mutex_) = 0;  // requested upstream; in_use_ + pending_ <= limit_bytes_
  os::Origin pending_in_ BERTH_GUARDED_BY(mutex_);    // the process that counted them
  std::uint64_t refused_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<Allocator> limit(std::shared_ptr<Allocator> upstream, std::size_t limit_bytes) {
  return std::make_shared<Limit>(std::move(upstream), limit_bytes);
}

}  // namespace berth
