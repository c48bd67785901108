// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/rules/rules.h"

namespace berth::internal::plan::onnx::rules {

namespace {

struct RecurrentSizes {
  std::int64_t steps = kUnknownDim;
  std::int64_t batch = kUnknownDim;
  std::int64_t directions = 1;
  std::int64_t hidden = kUnknownDim;
};

RecurrentSizes recurrent_sizes(const Call& call, bool batch_first) {
  RecurrentSizes sizes;
  const TensorType& x = call.in(0);
  if (x.ranked && x.dims.size() == 3) {
    sizes.steps = x.dims[batch_first ? 1 : 0];
    sizes.batch = x.dims[batch_first ? 0 : 1];
  }
  if (call.text("direction", "forward") == "bidirectional") sizes.directions = 2;
  const TensorType& r = call.in(2);
  const std::int64_t from_weights = r.ranked && r.dims.size() == 3 ? r.dims[2] : kUnknownDim;
  const std::int64_t hidden = call.integer("hidden_size", from_weights);
  if (hidden > 0) sizes.hidden = hidden;
  return sizes;
}

// Y has all steps; Y_h, and the cell of an LSTM, the last one.
void set_recurrent(Call& call) {
  const bool batch_first = call.integer("layout", 0) == 1;
  const RecurrentSizes n = recurrent_sizes(call, batch_first);
  const std::int64_t elem = call.in(0).elem;
  const DimList last = batch_first ? DimList{n.batch, n.directions, n.hidden} : DimList{n.directions, n.batch, n.hidden};
  call.set(0, elem, batch_first ? DimList{n.batch, n.steps, n.directions, n.hidden} : DimList{n.steps, n.directions, n.batch, n.hidden});
  call.set(1, elem, last);
  call.set(2, elem, last);
}

// Of [batch, sequence, heads * size], the size of one head.
std::int64_t head_size(std::int64_t width, std::int64_t heads) {
  return width == kUnknownDim || heads <= 0 || width % heads != 0 ? kUnknownDim : width / heads;
}

}  // namespace

void rnn(Call& call) { set_recurrent(call); }
void gru(Call& call) { set_recurrent(call); }
void lstm(Call& call) { set_recurrent(call); }

// Queries, keys and values of rank 3 or 4: the output has the queries' length and the values' width. Cache and
// score outputs are not inferred.
void attention(Call& call) {
  const TensorType& q = call.in(0);
  const TensorType& v = call.in(2);
  call.set(0, TensorType::of(q.elem));
  if (!q.ranked || !v.ranked || q.dims.size() != v.dims.size()) return;
  if (q.dims.size() == 4) return call.set(0, q.elem, {q.dims[0], q.dims[1], q.dims[2], v.dims[3]});
  if (q.dims.size() != 3) return;
  const std::int64_t heads = call.integer("q_num_heads", 0);
  const std::int64_t size = head_size(v.dims[2], call.integer("kv_num_heads", 0));
  call.set(0, q.elem, {q.dims[0], q.dims[1], heads > 0 ? dim_product(heads, size) : kUnknownDim});
}

}  // namespace berth::internal::plan::onnx::rules
