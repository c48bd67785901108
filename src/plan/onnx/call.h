// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/onnx/model.h"
#include "plan/onnx/tensor.h"
#include "plan/onnx/tensor_type.h"

// One node with the known types and contents of its inputs, and the inferred ones of its outputs. The whole
// interface of a rule.
namespace berth::internal::plan::onnx {

struct CallInput {
  const TensorType* type = nullptr;    // null: left out
  const Contents* contents = nullptr;  // null: not known
};

class Call {
 public:
  Call(const ModelNode& node, std::int64_t opset, std::vector<CallInput> inputs)
      : node_(node), opset_(opset), inputs_(std::move(inputs)), types_(node.outputs.size()), contents_(node.outputs.size()) {}

  const ModelNode& node() const noexcept { return node_; }
  std::int64_t opset() const noexcept { return opset_; }

  // ---- Inputs. One that is left out is a type of which nothing is known.
  std::size_t inputs() const noexcept { return inputs_.size(); }
  bool has(std::size_t input) const noexcept { return input < inputs_.size() && inputs_[input].type != nullptr; }
  const TensorType& in(std::size_t input) const noexcept;
  const Contents* contents(std::size_t input) const noexcept { return input < inputs_.size() ? inputs_[input].contents : nullptr; }

  // The integers of an input. Nothing when they are not known.
  const std::vector<std::int64_t>* ints(std::size_t input) const noexcept;
  // The same, but nothing unless all of them are known.
  const std::vector<std::int64_t>* known_ints(std::size_t input) const noexcept;

  // ---- Attributes.
  bool has_attribute(std::string_view name) const noexcept { return node_.find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const noexcept;
  std::string_view text(std::string_view name, std::string_view otherwise) const noexcept;
  const std::vector<std::int64_t>* int_list(std::string_view name) const noexcept;  // null when there is none

  // Integers that older opsets give as an attribute, and later ones as an input. `given` is whether either is
  // there.
  struct Given {
    bool given = false;
    const std::vector<std::int64_t>* ints = nullptr;
  };
  Given attribute_or_input(std::string_view name, std::size_t input) const noexcept;

  // Says why the node cannot run with these inputs; the first reason is kept.
  void contradict(std::string why) {
    if (contradiction_.empty()) contradiction_ = std::move(why);
  }
  const std::string& contradiction() const noexcept { return contradiction_; }

  // ---- Outputs. Setting one that the node has not does nothing.
  std::size_t outputs() const noexcept { return types_.size(); }
  void set(std::size_t output, TensorType type);
  void set(std::size_t output, std::int64_t elem, DimList dims) { set(output, TensorType::of(elem, std::move(dims))); }
  void set_contents(std::size_t output, Contents contents);
  TensorType& out(std::size_t output) noexcept { return types_[output]; }  // REQUIRES: output < outputs()
  std::optional<Contents>& out_contents(std::size_t output) noexcept { return contents_[output]; }

 private:
  const ModelNode& node_;
  std::int64_t opset_;
  std::vector<CallInput> inputs_;
  std::vector<TensorType> types_;
  std::vector<std::optional<Contents>> contents_;
  std::string contradiction_;
};

}  // namespace berth::internal::plan::onnx
