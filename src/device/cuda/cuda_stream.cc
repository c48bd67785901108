// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_stream.h"

#include <new>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"

namespace berth::internal::device::cuda {

namespace {

// The argument of a driver callback, for devices that cannot wait for a flag.
struct HeldTurn {
  std::shared_ptr<WorkQueue> queue;
  std::uint64_t number;
};

void CUDA_CB hold_turn(void* given) {
  const std::unique_ptr<HeldTurn> turn(static_cast<HeldTurn*>(given));
  try {
    turn->queue->wait(turn->number, false);
  } catch (...) {  // rethrown by waits for its event
  }
}

}  // namespace

// ---- events

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) context_.return_event(event_, CudaContext::Waiting::spins);
}

Status CudaEvent::record(CUstream stream, bool captured) noexcept {
  const Result<CUevent> event = context_.borrow_event(CudaContext::Waiting::spins);
  if (!event) return event.failure();
  const Status recorded = BERTH_CUDA_CALL(context_, cuEventRecord, *event, stream);
  if (!recorded) {
    context_.return_event(*event, CudaContext::Waiting::spins);
    return recorded;
  }
  event_ = *event;
  captured_ = captured;
  return {};
}

bool CudaEvent::query() {
  if (captured_) return false;
  if (event_ != nullptr) {
    const Scope scope(context_);
    if (!scope) throw_failure(scope.failure(), context_.device(), "querying an event");
    const CUresult result = context_.driver().cuEventQuery(event_);
    if (result == CUDA_ERROR_NOT_READY) return false;
    require(context_.check("cuEventQuery", result), context_.device(), "querying an event (the error may be of earlier work)");
  }
  return queue_ == nullptr || queue_->is_done(number_);
}

void CudaEvent::wait() {
  if (captured_) {
    throw DeviceError(ErrorCode::unsupported,
                      {text::join("waiting for an event of ", context_.device().to_string()),
                       "it was recorded while its stream was captured: it belongs to the graph, and never completes by itself",
                       "launch the graph into a stream, and wait for an event of that"},
                      {{"device", context_.device().to_string()}});
  }
  if (event_ != nullptr) {
    const Scope scope(context_);
    if (!scope) throw_failure(scope.failure(), context_.device(), "waiting for an event");
    require(BERTH_CUDA_CALL(context_, cuEventSynchronize, event_), context_.device(),
            "waiting for an event (the error may be of earlier work)");
  }
  if (queue_ != nullptr) queue_->wait(number_, false);
}

// ---- streams

CudaStream* cuda_stream(StreamRef stream, Device device) noexcept {
  return stream && stream->device() == device ? dynamic_cast<CudaStream*>(stream.state()) : nullptr;
}

CudaStream::~CudaStream() {
  if (context_.is_inherited()) return;
  const std::shared_ptr<Worker> functions = known_worker();
  if (functions != nullptr) functions->queue->close();
  if (owned_ == Owned::no) return;
  const Scope scope(context_);
  if (scope) (void)BERTH_CUDA_CALL(context_, cuStreamDestroy, stream_).ok();  // queued work still finishes
}

bool CudaStream::is_capturing() const noexcept {
  if (!context_.is_alive() || ended_.load(std::memory_order_relaxed)) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  // A handle knows its context, so the query needs no Scope; only the legacy stream depends on the current
  // context.
  if (stream_ != CU_STREAM_LEGACY) result = context_.driver().cuStreamIsCapturing(stream_, &status);
  if (result == CUDA_ERROR_INVALID_CONTEXT) {
    const Scope scope(context_);
    if (!scope) return false;
    result = context_.driver().cuStreamIsCapturing(stream_, &status);
  }
  // The legacy stream, while a stream that it would have to wait for is being captured: treat it as captured.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
  return context_.check("cuStreamIsCapturing", result) && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void CudaStream::check_usable(std::string_view asked) const {
  if (context_.is_inherited()) throw_inherited_stream(device());
  require(context_.usable(), device(), asked);
  if (!ended_.load(std::memory_order_relaxed)) return;
  throw DeviceError(
      ErrorCode::device_error,
      {text::join(asked, " on ", device().to_string()), "end_stream has ended the stream's handle", "wrap the stream that is used now"},
      {{"device", device().to_string()}});
}

void CudaStream::refuse_in_capture(std::string_view asked) const {
  if (!is_capturing()) return;
  throw DeviceError(
      ErrorCode::unsupported,
      {text::join(asked, " on ", device().to_string()), "the stream is being captured into a graph, and this cannot be captured",
       "do it before the capture begins or after it has ended"},
      {{"device", device().to_string()}});
}

std::shared_ptr<CudaStream::Worker> CudaStream::known_worker() const noexcept {
  const os::Lock lock(mutex_);
  return worker_;
}

std::shared_ptr<CudaStream::Worker> CudaStream::worker() {
  if (std::shared_ptr<Worker> known = known_worker()) return known;
  const Scope scope(context_);
  if (!scope) throw_failure(scope.failure(), device(), "a host function");
  const Result<HostFlags::Flag> flag = flags_.borrow();
  if (!flag) throw_failure(flag.failure(), device(), "a host function");
  auto made = std::make_shared<Worker>(flags_);
  made->flag = *flag;
  made->first = flag->host->load(std::memory_order_relaxed);
  made->queue = WorkQueue::start(device());
  std::shared_ptr<Worker> mine = made;
  {
    const os::Lock lock(mutex_);
    if (worker_ == nullptr) worker_ = made;
    made = worker_;
  }
  if (made != mine) mine->queue->close();  // another thread was first
  return made;
}

// Enqueues a function to the thread, to run when all current work of the stream is done.
std::uint64_t CudaStream::put(const std::shared_ptr<Worker>& functions, std::function<void()> work) {
  const Result<CUevent> event = context_.borrow_event(CudaContext::Waiting::sleeps);
  if (!event) throw_failure(event.failure(), device(), "a host function");
  if (const Status recorded = BERTH_CUDA_CALL(context_, cuEventRecord, *event, stream_); !recorded) {
    context_.return_event(*event, CudaContext::Waiting::sleeps);
    throw_failure(recorded.failure(), device(), "a host function");
  }
  struct Turn {
    CudaContext& context;
    CUevent event;
    std::shared_ptr<Worker> worker;
    ~Turn() { context.return_event(event, CudaContext::Waiting::sleeps); }
  };
  // Shared, as std::function copies, and the event must be returned once.
  const std::shared_ptr<Turn> turn(new Turn{context_, *event, functions});
  return functions->queue->put([turn, work = std::move(work)]() mutable {
    // The stream continues even if the function throws.
    struct CountUp {
      Turn& turn;
      std::function<void()>& work;
      ~CountUp() {
        work = nullptr;  // destroy its captures before waiters are notified
        // release: what the function wrote is visible to the device.
        turn.worker->flag.host->fetch_add(1, std::memory_order_release);
      }
    };
    const CountUp at_end{*turn, work};
    {
      const Scope scope(turn->context);
      if (!scope) throw_failure(scope.failure(), turn->context.device(), "a host function");
      require(BERTH_CUDA_CALL(turn->context, cuEventSynchronize, turn->event), turn->context.device(), "a host function");
    }
    work();
  });
}

// Makes later work of the stream wait for function `number`.
void CudaStream::hold_stream(const std::shared_ptr<Worker>& functions, std::uint64_t number) noexcept {
  const std::uint32_t value = functions->first + static_cast<std::uint32_t>(number);
  CUresult result = context_.driver().cuStreamWaitValue32(stream_, functions->flag.device, value, CU_STREAM_WAIT_VALUE_GEQ);
  if (result == CUDA_SUCCESS) return;
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    auto* const turn = new (std::nothrow) HeldTurn{functions->queue, number};
    if (turn != nullptr) {
      result = context_.driver().cuLaunchHostFunc(stream_, hold_turn, turn);
      if (result == CUDA_SUCCESS) return;
      delete turn;
    }
  }
  (void)context_.check("cuStreamWaitValue32", result).ok();
  // The function is enqueued and cannot be cancelled. So the caller waits for it here, and enqueues its next
  // work after it.
  try {
    functions->queue->wait(number, false);
  } catch (...) {  // rethrown by waits for its event
  }
}

Event CudaStream::do_enqueue(std::function<void()> work) {
  check_usable("a host function");
  refuse_in_capture("a host function");
  const std::shared_ptr<Worker> functions = worker();
  // First: once the work is enqueued, nothing may fail.
  const auto event = std::make_shared<CudaEvent>(context_, functions->queue, 0);
  const Scope scope(context_);
  if (!scope) throw_failure(scope.failure(), device(), "a host function");
  const std::uint64_t number = put(functions, std::move(work));
  event->set_number(number);
  hold_stream(functions, number);
  // Without a device event the host function alone tells when it is done, and other streams wait for that.
  (void)event->record(stream_, false).ok();
  return Event(event);
}

Event CudaStream::do_record() {
  if (ended_.load(std::memory_order_relaxed)) return {};
  check_usable("recording an event");
  const std::shared_ptr<Worker> functions = known_worker();
  const bool captured = is_capturing();
  const auto event = std::make_shared<CudaEvent>(context_, functions == nullptr ? nullptr : functions->queue,
                                                 functions == nullptr ? 0 : functions->queue->last());
  const Scope scope(context_);
  if (!scope) throw_failure(scope.failure(), device(), "recording an event");
  require(event->record(stream_, captured), device(), "recording an event");
  return Event(event);
}

void CudaStream::do_wait(const Event& event) {
  if (event.state() == nullptr) return;
  check_usable("waiting for an event");
  auto* const ours = dynamic_cast<CudaEvent*>(event.state().get());
  const bool captured = is_capturing();
  if (captured && (ours == nullptr || !ours->is_captured())) {
    if (event.state()->query()) return;  // nothing to wait for
    refuse_in_capture("waiting for an event of work outside the capture");
  }
  if (ours == nullptr || ours->handle() == nullptr) {
    const std::shared_ptr<Worker> functions = worker();
    const Scope scope(context_);
    if (!scope) throw_failure(scope.failure(), device(), "waiting for an event");
    // Waits on the state and not the Event: a wait inside the stream's work must not advance the observed
    // progress.
    hold_stream(functions, put(functions, [state = event.state()] { state->wait(); }));
    return;
  }
  const Scope scope(context_);
  if (!scope) throw_failure(scope.failure(), device(), "waiting for an event");
  require(BERTH_CUDA_CALL(context_, cuStreamWaitEvent, stream_, ours->handle(), CU_EVENT_WAIT_DEFAULT), device(), "waiting for an event");
}

void CudaStream::do_synchronize() {
  if (ended_.load(std::memory_order_relaxed)) return;
  check_usable("waiting for a stream");
  refuse_in_capture("waiting for the stream");
  {
    const Scope scope(context_);
    if (!scope) throw_failure(scope.failure(), device(), "waiting for a stream");
    require(BERTH_CUDA_CALL(context_, cuStreamSynchronize, stream_), device(), "waiting for a stream (the error may be of earlier work)");
  }
  if (const std::shared_ptr<Worker> functions = known_worker()) functions->queue->wait(functions->queue->last(), true);
}

void CudaStream::end() {
  synchronize();
  ended_.store(true, std::memory_order_relaxed);
}

}  // namespace berth::internal::device::cuda
