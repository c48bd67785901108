// SPDX-License-Identifier: Apache-2.0
#include "programs.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "base/random.h"
#include "berth/base/units.h"

namespace berth::bench {

namespace {

using internal::base::Random;
using Name = std::uint64_t;

constexpr std::size_t kHalf = 2;  // bytes of a number of 16 bits
constexpr std::size_t kFull = 4;

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random(seed) {}

  Name take(std::size_t bytes, std::uint64_t stream = 0) {
    events_.push_back({TraceEvent::Operation::allocate, ++names_, bytes, stream, 0});
    return names_;
  }
  void give(Name name) { events_.push_back({TraceEvent::Operation::free, name, 0, 0, 0}); }
  void give(std::vector<Name>& names) {
    for (const Name name : names) give(name);
    names.clear();
  }
  // From `least` to `most`, in steps.
  std::size_t draw(std::size_t least, std::size_t most, std::size_t step = 1) {
    return least + random.below((most - least) / step + 1) * step;
  }
  ReplayScript script() const { return plan_replay(events_); }

  Random random;

 private:
  std::vector<TraceEvent> events_;
  Name names_ = 0;
};

// Weights in half precision, with master copies, two moments, and gradients where a program trains.
void take_model(Writer& to, std::size_t layers, std::size_t width, bool trains) {
  const std::array<std::size_t, 6> shapes{3 * width * width, width * width, 4 * width * width, 4 * width * width, width, width};
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (const std::size_t numbers : shapes) {
      to.take(numbers * kHalf);
      for (int i = 0; trains && i < 4; ++i) to.take(numbers * kFull);
    }
  }
}

// What a layer computes and keeps for its gradients.
std::vector<Name> take_layer(Writer& to, std::size_t tokens, std::size_t width, std::uint64_t stream = 0) {
  std::vector<Name> kept;
  const Name norm = to.take(tokens * width * kHalf, stream);
  kept.push_back(to.take(tokens * kFull, stream));
  kept.push_back(to.take(tokens * 3 * width * kHalf, stream));
  const Name scores = to.take(tokens * 64 * kFull, stream);
  kept.push_back(to.take(tokens * width * kHalf, stream));
  to.give(scores);
  kept.push_back(to.take(tokens * 4 * width * kHalf, stream));
  kept.push_back(to.take(tokens * 4 * width * kHalf, stream));
  const Name out = to.take(tokens * width * kHalf, stream);
  to.give(norm);
  kept.push_back(out);
  return kept;
}

void run_back(Writer& to, std::vector<Name>& kept, std::size_t tokens, std::size_t width, std::uint64_t stream = 0) {
  Name gradient = to.take(tokens * width * kHalf, stream);
  while (!kept.empty()) {
    const Name next = to.take(tokens * (kept.size() % 3 == 0 ? 4 : 1) * width * kHalf, stream);
    const Name weights = to.take(width * width * kFull, stream);
    to.give(kept.back());
    kept.pop_back();
    to.give(gradient);
    to.give(weights);
    gradient = next;
  }
  to.give(gradient);
}

void write_checkpoints(Writer& to) {
  const std::size_t layers = to.draw(20, 32);
  const std::size_t width = to.draw(1536, 2560, 256);
  const std::size_t words = 50'304;
  take_model(to, layers, width, true);
  for (int step = 0; step < 24; ++step) {
    const std::size_t tokens = to.draw(2, 16) * to.draw(128, 1024, 8);
    std::vector<Name> points;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      points.push_back(to.take(tokens * width * kHalf));
      std::vector<Name> kept = take_layer(to, tokens, width);
      to.give(kept);
    }
    const Name scores = to.take(tokens * words * kHalf);
    const Name losses = to.take(tokens * words * kFull);
    to.give(scores);
    to.give(losses);
    while (!points.empty()) {
      std::vector<Name> kept = take_layer(to, tokens, width);
      run_back(to, kept, tokens, width);
      to.give(points.back());
      points.pop_back();
    }
  }
}

void write_experts(Writer& to) {
  const std::size_t layers = to.draw(8, 16);
  const std::size_t width = to.draw(1024, 2048, 128);
  constexpr std::size_t kExperts = 16;
  take_model(to, layers, width, true);
  for (int step = 0; step < 20; ++step) {
    const std::size_t tokens = to.draw(4096, 16'384, 64);
    std::vector<std::vector<Name>> kept(layers);
    std::vector<std::vector<std::size_t>> shares(layers);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      kept[layer].push_back(to.take(tokens * width * kHalf));
      kept[layer].push_back(to.take(tokens * kExperts * kFull));
      std::size_t left = 2 * tokens;
      for (std::size_t expert = 0; expert < kExperts; ++expert) {
        const std::size_t share = expert + 1 == kExperts ? left : std::min<std::size_t>(left, to.random.below(4 * tokens / kExperts));
        left -= share;
        shares[layer].push_back(share);
        if (share == 0) continue;
        kept[layer].push_back(to.take(share * width * kHalf));
        const Name inner = to.take(share * 4 * width * kHalf);
        kept[layer].push_back(to.take(share * 4 * width * kHalf));
        kept[layer].push_back(to.take(share * width * kHalf));
        to.give(inner);
      }
    }
    for (std::size_t layer = layers; layer-- > 0;) {
      Name gradient = to.take(tokens * width * kHalf);
      for (const std::size_t share : shares[layer]) {
        if (share == 0) continue;
        const Name inner = to.take(share * 4 * width * kHalf);
        const Name weights = to.take(width * width * kFull);
        for (int i = 0; i < 3; ++i) to.give(kept[layer].back()), kept[layer].pop_back();
        to.give(inner);
        to.give(weights);
      }
      to.give(kept[layer]);
      to.give(gradient);
    }
  }
}

void write_paged(Writer& to) {
  const std::size_t layers = to.draw(24, 40);
  const std::size_t width = to.draw(2048, 4096, 512);
  take_model(to, layers, width, false);
  constexpr std::size_t kPage = 16_MiB;
  std::vector<Name> pages;
  struct Asked {
    std::size_t tokens;
    std::size_t left;
    std::vector<Name> pages;
  };
  std::vector<Asked> running;
  const std::size_t token_bytes = layers * width / 4 * kHalf;
  const auto grow = [&](Asked& one) {
    while (one.pages.size() * kPage < one.tokens * token_bytes) one.pages.push_back(to.take(kPage));
  };
  for (int step = 0; step < 500; ++step) {
    if (running.size() < 24 && to.random.one_in(3)) {
      const std::size_t prompt = to.draw(16, 4000);
      for (std::size_t layer = 0; layer < layers; ++layer) {
        std::vector<Name> kept = take_layer(to, prompt, width);
        to.give(kept);
      }
      running.push_back({prompt, to.draw(10, 400), {}});
    }
    const std::size_t batch = std::max<std::size_t>(1, running.size());
    for (std::size_t layer = 0; layer < layers; layer += 4) {
      std::vector<Name> kept = take_layer(to, batch, width);
      to.give(kept);
    }
    const Name scores = to.take(batch * 128'256 * kFull);
    to.give(scores);
    for (Asked& one : running) {
      ++one.tokens;
      --one.left;
      grow(one);
      if (one.left == 0) to.give(one.pages);
    }
    std::erase_if(running, [](const Asked& one) { return one.left == 0; });
  }
}

void write_unpaged(Writer& to) {
  const std::size_t layers = to.draw(12, 24);
  const std::size_t width = to.draw(1024, 2048, 256);
  take_model(to, layers, width, false);
  struct Asked {
    std::size_t tokens;
    std::size_t left;
    std::vector<Name> cache;
  };
  std::vector<Asked> running;
  for (int step = 0; step < 500; ++step) {
    if (running.size() < 16 && to.random.one_in(6)) {
      Asked made{to.draw(64, 6000), to.draw(20, 200), {}};
      for (std::size_t layer = 0; layer < 2 * layers; ++layer) made.cache.push_back(to.take(made.tokens * width * kHalf));
      std::vector<Name> kept = take_layer(to, made.tokens, width);
      to.give(kept);
      running.push_back(std::move(made));
    }
    for (Asked& one : running) {
      ++one.tokens;
      --one.left;
      for (Name& cache : one.cache) {
        const Name longer = to.take(one.tokens * width * kHalf);
        to.give(cache);
        cache = longer;
      }
      const Name scores = to.take(32'000 * kFull);
      to.give(scores);
      if (one.left == 0) to.give(one.cache);
    }
    std::erase_if(running, [](const Asked& one) { return one.left == 0; });
  }
}

void write_four_streams(Writer& to) {
  const std::size_t layers = to.draw(12, 24);
  const std::size_t width = to.draw(1024, 2048, 256);
  constexpr std::uint64_t kLoads = 2;
  constexpr std::uint64_t kExchanges = 3;
  constexpr std::uint64_t kWrites = 4;
  take_model(to, layers, width, true);
  std::vector<Name> batch;
  for (int step = 0; step < 30; ++step) {
    const std::size_t tokens = to.draw(2048, 12'288, 16);
    std::vector<Name> loaded{to.take(tokens * 3 * kFull, kLoads), to.take(to.draw(8, 64) * 1_MiB, kLoads)};
    std::vector<std::vector<Name>> kept;
    for (std::size_t layer = 0; layer < layers; ++layer) kept.push_back(take_layer(to, tokens, width, 1));
    std::vector<Name> buckets;
    for (std::size_t layer = layers; layer-- > 0;) {
      run_back(to, kept[layer], tokens, width, 1);
      if (layer % 4 == 0) buckets.push_back(to.take(12 * width * width * kHalf * to.draw(1, 4), kExchanges));
      if (buckets.size() > 2) to.give(buckets.front()), buckets.erase(buckets.begin());
    }
    to.give(buckets);
    to.give(batch);
    batch = std::move(loaded);
    if (step % 5 == 0) {
      std::vector<Name> written;
      for (std::size_t layer = 0; layer < layers; ++layer) written.push_back(to.take(12 * width * width * kHalf, kWrites));
      to.give(written);
    }
  }
}

constexpr std::array<std::pair<std::string_view, void (*)(Writer&)>, 5> kPrograms{{{"checkpoints", write_checkpoints},
                                                                                   {"experts", write_experts},
                                                                                   {"paged", write_paged},
                                                                                   {"unpaged", write_unpaged},
                                                                                   {"four_streams", write_four_streams}}};

}  // namespace

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const auto& [name, write] : kPrograms) names.emplace_back(name);
  return names;
}

ReplayScript make_program(std::string_view name, std::uint64_t seed) {
  const auto found = std::ranges::find(kPrograms, name, &decltype(kPrograms)::value_type::first);
  if (found == kPrograms.end()) throw std::invalid_argument("no such program: " + std::string(name));
  Writer writer(seed);
  found->second(writer);
  return writer.script();
}

}  // namespace berth::bench
