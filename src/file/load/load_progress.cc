// SPDX-License-Identifier: Apache-2.0
#include "file/load/load_progress.h"

#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::file::load {

namespace {

ErrorText text_of(std::size_t done, std::size_t total, const char* what, const char* help) {
  return {text::join("loading ", text::bytes(total)),
          text::join("the progress callback ", what, " when ", text::bytes(done), " were loaded"), help};
}

}  // namespace

void Progress::add(std::size_t bytes) {
  const std::size_t done = done_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  // The final call is left to finish(), so that it happens once, when everything is loaded.
  if (!callback_ || done >= total_ || std::this_thread::get_id() != caller_ || tell(done)) return;
  throw Error(ErrorCode::cancelled,
              text_of(done, total_, "returned false", "everything was released: load again, and return true from the callback"),
              {{"done", done}, {"total", total_}});
}

void Progress::finish() const {
  if (callback_) tell(total_);
}

bool Progress::tell(std::size_t done) const {
  try {
    return callback_({done, total_});
  } catch (...) {  // user code may throw anything; it is nested in the Error
    std::throw_with_nested(Error(ErrorCode::callback_failed, text_of(done, total_, "threw", "let the callback return false to stop a load"),
                                 {{"done", done}, {"total", total_}}));
  }
}

}  // namespace berth::internal::file::load
