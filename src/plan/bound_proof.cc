// SPDX-License-Identifier: Apache-2.0
#include "plan/bound_proof.h"

#include <algorithm>

namespace berth::internal::plan {

namespace {

BoundProof proof_at(BoundProof::By by, NodeId step) { return {by, {step, step + 1}}; }

class Finder {
 public:
  explicit Finder(const std::vector<PackBuffer>& buffers) : buffers_(buffers) {
    NodeId end = 0;
    for (const PackBuffer& one : buffers) end = std::max(end, one.end);
    changes_.resize(end + std::size_t{1});
  }

  BoundProof find(const std::vector<std::uint32_t>& indices) {
    std::fill(changes_.begin(), changes_.end(), 0);
    BoundProof proof{BoundProof::By::live};
    std::size_t most = 0;
    for (const std::uint32_t index : indices) {
      const PackBuffer& one = buffers_[index];
      changes_[one.begin] += one.bytes;
      changes_[one.end] -= one.bytes;
      if (one.bytes == 0 || !one.fixed || *one.fixed + one.bytes <= most) continue;
      most = *one.fixed + one.bytes;
      proof = proof_at(BoundProof::By::fixed, one.begin);
    }
    std::size_t live = 0;
    for (NodeId step = 0; step < changes_.size(); ++step) {
      live += changes_[step];
      // On a tie `live` replaces `fixed`: it is cheaper to verify.
      if (live < most || live == 0 || (live == most && proof.by == BoundProof::By::live)) continue;
      most = live;
      proof = proof_at(BoundProof::By::live, step);
    }
    return proof;
  }

 private:
  const std::vector<PackBuffer>& buffers_;
  std::vector<std::size_t> changes_;  // differences may wrap, prefix sums do not
};

}  // namespace

std::vector<BoundProof> find_bound_proofs(const std::vector<PackBuffer>& buffers, std::size_t devices) {
  std::vector<std::vector<std::uint32_t>> indices(devices);
  for (std::uint32_t i = 0; i < buffers.size(); ++i) indices[buffers[i].device].push_back(i);
  std::vector<BoundProof> proofs;
  Finder finder(buffers);
  for (const std::vector<std::uint32_t>& one : indices) proofs.push_back(finder.find(one));
  return proofs;
}

}  // namespace berth::internal::plan
