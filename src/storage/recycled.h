// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

// A standard allocator with thread-local free lists, for small objects that are made and destroyed by the
// million, such as the reference-counted state of buffers. Any thread may free what another allocated. Safe at
// any time, even after the thread's other thread-local objects are destroyed.
namespace berth::internal::storage {

// The free list of one thread, for one size.
template <std::size_t kBytes>
class Spares {
 public:
  static void* take() {
    State& state = t_state;
    if (state.first == nullptr) return ::operator new(kBytes);
    Piece* const piece = state.first;
    state.first = piece->next;
    --state.count;
    return piece;
  }

  static void give(void* memory) noexcept {
    State& state = t_state;
    if (state.count >= kMost || state.ended) {
      ::operator delete(memory);
      return;
    }
    // Constructed on first use, so that its destructor runs when the thread ends.
    if (state.count == 0) (void)&t_cleaner;
    auto* const piece = static_cast<Piece*>(memory);
    piece->next = state.first;
    state.first = piece;
    ++state.count;
  }

 private:
  static constexpr unsigned kMost = 64;
  struct Piece {
    Piece* next;
  };
  static_assert(kBytes >= sizeof(Piece));

  struct State {
    Piece* first = nullptr;
    unsigned count = 0;
    bool ended = false;
  };
  struct Cleaner {
    Cleaner() noexcept {}
    ~Cleaner() {
      t_state.ended = true;
      while (Piece* const piece = t_state.first) {
        t_state.first = piece->next;
        ::operator delete(piece);
      }
    }
  };

  // In the static TLS block, where an access takes three instructions.
  static inline constinit thread_local State t_state [[gnu::tls_model("initial-exec")]] = {};
  static inline thread_local Cleaner t_cleaner;
};

template <class T>
struct Recycled {
  using value_type = T;
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  Recycled() noexcept = default;
  template <class U>
  Recycled(const Recycled<U>&) noexcept {}

  T* allocate(std::size_t count) { return static_cast<T*>(count == 1 ? Spares<sizeof(T)>::take() : ::operator new(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (count == 1)
      Spares<sizeof(T)>::give(memory);
    else
      ::operator delete(memory);
  }
  template <class U>
  friend bool operator==(const Recycled&, const Recycled<U>&) noexcept {
    return true;
  }
};

}  // namespace berth::internal::storage
