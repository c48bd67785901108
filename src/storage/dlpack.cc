// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/dlpack.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "storage/make.h"

namespace berth {

using namespace internal;
using namespace internal::storage;

namespace {

using dlpack::DataType;

struct DTypeName {
  DType dtype;
  std::uint8_t code;
};

constexpr DTypeName kDTypes[] = {
    {DType::boolean, dlpack::kBool},
    {DType::u8, dlpack::kUInt},
    {DType::u16, dlpack::kUInt},
    {DType::u32, dlpack::kUInt},
    {DType::u64, dlpack::kUInt},
    {DType::i8, dlpack::kInt},
    {DType::i16, dlpack::kInt},
    {DType::i32, dlpack::kInt},
    {DType::i64, dlpack::kInt},
    {DType::f16, dlpack::kFloat},
    {DType::f32, dlpack::kFloat},
    {DType::f64, dlpack::kFloat},
    {DType::bf16, dlpack::kBfloat},
    {DType::c64, dlpack::kComplex},
    {DType::c128, dlpack::kComplex},
    {DType::f8e4m3, dlpack::kFloat8_e4m3fn},
    {DType::f8e5m2, dlpack::kFloat8_e5m2},
};
static_assert(std::size(kDTypes) == kDTypeCount);

DataType dlpack_dtype(DType dtype) noexcept {
  for (const DTypeName& entry : kDTypes) {
    if (entry.dtype == dtype) return {entry.code, static_cast<std::uint8_t>(info(dtype).bits), 1};
  }
  return {};
}

DType berth_dtype(const DataType& dtype) {
  for (const DTypeName& entry : kDTypes) {
    if (entry.code == dtype.code && info(entry.dtype).bits == dtype.bits && dtype.lanes == 1) return entry.dtype;
  }
  throw ArgumentError(ErrorCode::unsupported_dtype,
                      {text::join("a DLPack tensor of type code ", dtype.code, ", ", dtype.bits, " bits, ", dtype.lanes, " lanes"),
                       "berth has no such element type", "convert it in the framework it comes from"},
                      {{"code", dtype.code}, {"bits", dtype.bits}, {"lanes", dtype.lanes}});
}

struct DeviceName {
  std::string_view kind;
  std::int32_t type;
};

// `pinned` memory that is not page-locked is plain host memory to other frameworks, and so is shared memory.
// Where a type has two entries, imported tensors get the first.
constexpr DeviceName kDevices[] = {
    {"cpu", dlpack::kCpu}, {"cuda", dlpack::kCuda}, {"pinned", dlpack::kCudaHost}, {"sim", dlpack::kExtension}, {"shared", dlpack::kCpu}};

dlpack::DeviceId dlpack_device(const Storage& storage) {
  const Device device = storage.device();
  if (device.kind_name() == "pinned" && !storage.is_pinned()) return {dlpack::kCpu, 0};
  for (const DeviceName& entry : kDevices) {
    if (entry.kind == device.kind_name()) return {entry.type, device.index()};
  }
  throw DeviceError(ErrorCode::unsupported,
                    {text::join("exporting a storage on ", device.to_string(), " by DLPack"), "DLPack has no name for that kind of device",
                     "use to(\"cpu\") first"},
                    {{"device", device.to_string()}});
}

[[noreturn]] void throw_format(std::string why, std::vector<Fact> facts = {}) {
  throw FormatError(ErrorCode::format_error, {"taking a DLPack tensor", std::move(why), "the exporter is at fault: check its version"},
                    std::move(facts));
}

// `ours`: this library exported the tensor. The meaning of an extension device is up to its exporter, so only
// our own are simulated devices.
Device berth_device(const dlpack::DeviceId& id, bool ours) {
  if (id.type == dlpack::kExtension && !ours) {
    throw DeviceError(ErrorCode::unsupported,
                      {text::join("taking a DLPack tensor on extension device ", id.index),
                       "each framework means another device by that type, and this tensor is not one that berth exported",
                       "copy it to the host in the framework it comes from"},
                      {{"type", id.type}, {"index", id.index}});
  }
  for (const DeviceName& entry : kDevices) {
    if (entry.type == id.type && id.index >= 0 && id.index <= UINT16_MAX) return Device(entry.kind, id.index);
  }
  throw_format(text::join("device type ", id.type, ", index ", id.index, " is not one that berth knows"),
               {{"type", id.type}, {"index", id.index}});
}

// An exported storage, with the arrays that the tensor points to.
struct Export {
  Storage storage;
  std::shared_ptr<const void> pin;  // the consumer has the address
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

template <class Managed>
void delete_export(Managed* self) {
  delete static_cast<Export*>(self->manager_ctx);
  delete self;
}

template <class Managed>
std::unique_ptr<Managed> make_export(const Storage& storage) {
  auto kept = std::make_unique<Export>(Export{storage,
                                              storage.buffer().keep_alive(),
                                              {storage.shape().begin(), storage.shape().end()},
                                              {storage.strides().begin(), storage.strides().end()}});
  auto managed = std::make_unique<Managed>();
  managed->dl_tensor = {.data = storage.data_ptr(),
                        .device = dlpack_device(storage),
                        .ndim = static_cast<std::int32_t>(storage.rank()),
                        .dtype = dlpack_dtype(storage.dtype()),
                        .shape = kept->shape.data(),
                        .strides = kept->strides.data(),
                        .byte_offset = 0};
  managed->deleter = delete_export<Managed>;
  managed->manager_ctx = kept.release();
  return managed;
}

struct Layout {
  Shape shape;
  Strides strides;
};

Layout checked_layout(const dlpack::Tensor& tensor) {
  if (tensor.ndim < 0) throw_format(text::join("its rank is ", tensor.ndim), {{"ndim", tensor.ndim}});
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  if (rank > kMaxRank) {  // before the arrays are read: their length is what the tensor claims
    throw ArgumentError(
        ErrorCode::limit_exceeded,
        {text::join("a DLPack tensor of rank ", rank), text::join("the highest rank is ", kMaxRank), "merge dimensions first"},
        {{"rank", rank}, {"limit", kMaxRank}});
  }
  if (rank > 0 && tensor.shape == nullptr) throw_format("it has no shape");
  const std::span<const std::int64_t> dims(tensor.shape, rank);
  for (const std::int64_t dim : dims) {
    if (dim < 0) throw_format(text::join("a dimension is ", dim), {{"dim", dim}});
  }
  const Shape shape(dims);
  if (tensor.strides == nullptr) return {shape, Strides::contiguous(shape)};
  return {shape, Strides(std::span<const std::int64_t>(tensor.strides, rank))};
}

// The storage over a tensor whose bytes `deleter` frees. The deleter is taken only on success.
Storage import(const dlpack::Tensor& tensor, bool ours, bool read_only, Deleter& deleter, const Site& site) {
  const DType dtype = berth_dtype(tensor.dtype);
  const Device device = berth_device(tensor.device, ours);
  backend(device);
  const Layout layout = checked_layout(tensor);
  const auto extent = try_extent(layout.shape, layout.strides, dtype);
  if (!extent) throw_format("its elements are more, or lie farther apart, than 63 bits can count");
  const bool none = extent->from_bytes == 0;
  if (!none && tensor.data == nullptr) throw_format("it has elements but no address");
  const auto first = try_add(reinterpret_cast<std::uintptr_t>(tensor.data), static_cast<std::uintptr_t>(tensor.byte_offset));
  if (!first || *first < extent->before_bytes || !try_add(*first, extent->from_bytes))
    throw_format("its elements lie outside the address space");
  void* const start = none ? nullptr : reinterpret_cast<void*>(*first - extent->before_bytes);
  Buffer buffer = BufferMaker::wrap(start, extent->before_bytes + extent->from_bytes, device, deleter, read_only, Owner::dlpack, site);
  return StorageMaker::make(std::move(buffer), dtype, layout.shape, layout.strides,
                            static_cast<std::int64_t>(extent->before_bytes / size_bytes(dtype)), layout.shape.num_elements());
}

// Consumes the tensor: its deleter is called when the last storage over it is gone, or here when it is refused.
template <class Managed>
Storage import_managed(Managed* managed, bool read_only, std::string_view refused, const Site& site) {
  Adoption adoption(nullptr, [managed](void*) {
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
  if (!refused.empty()) throw_format(std::string(refused));
  return import(managed->dl_tensor, managed->deleter == delete_export<Managed>, read_only, adoption.deleter, site);
}

}  // namespace

DlpackTensor::DlpackTensor(DlpackTensor&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}

DlpackTensor& DlpackTensor::operator=(DlpackTensor&& other) noexcept {
  DlpackTensor old(std::move(*this));  // freed on return
  tensor_ = std::exchange(other.tensor_, nullptr);
  return *this;
}

DlpackTensor::~DlpackTensor() {
  if (tensor_ != nullptr && tensor_->deleter != nullptr) tensor_->deleter(tensor_);
}

dlpack::ManagedTensorVersioned* DlpackTensor::take() {
  if (tensor_ == nullptr)
    throw AccessError(ErrorCode::already_consumed, {"taking a DLPack tensor", "it was taken before", "export the storage again"});
  return std::exchange(tensor_, nullptr);
}

DlpackTensor to_dlpack(const Storage& storage) {
  auto managed = make_export<dlpack::ManagedTensorVersioned>(storage);
  managed->version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  managed->flags = storage.is_read_only() ? dlpack::kReadOnly : 0;
  return DlpackTensor(managed.release());
}

dlpack::ManagedTensor* to_dlpack_legacy(const Storage& storage) {
  if (storage.is_read_only()) {
    throw AccessError(ErrorCode::read_only,
                      {"exporting a read-only storage by DLPack without a version",
                       "that layout cannot say so, and the consumer could write", "use to_dlpack, or export a clone()"});
  }
  return make_export<dlpack::ManagedTensor>(storage).release();
}

Storage from_dlpack(DlpackTensor tensor, Site site) {
  dlpack::ManagedTensorVersioned* const managed = tensor.take();
  // With another major version, only the offsets of version, context and deleter are guaranteed.
  const bool readable = managed->version.major == dlpack::kMajorVersion;
  return import_managed(managed, readable && (managed->flags & dlpack::kReadOnly) != 0, readable ? "" : "its major version is not 1", site);
}

Storage from_dlpack(dlpack::ManagedTensor* tensor, Site site) {
  if (tensor == nullptr)
    throw AccessError(ErrorCode::already_consumed, {"taking a DLPack tensor", "the pointer is null", "export the storage again"});
  return import_managed(tensor, false, "", site);
}

}  // namespace berth
