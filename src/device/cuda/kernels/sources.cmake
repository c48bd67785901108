# SPDX-License-Identifier: Apache-2.0
# The kernels of the CUDA backend, from src/: what nvcc compiles, with which options, and what the C++ compiler does.
set(berth_cuda_kernel_sources
    device/cuda/kernels/elements.cu device/cuda/kernels/fill.cu device/cuda/kernels/gather.cu device/cuda/kernels/rows.cu
    device/cuda/kernels/rows_integers.cu device/cuda/kernels/tiles.cu)
set(berth_cuda_kernel_options --expt-relaxed-constexpr)  # conversions call the constexpr functions of berth/base/float_types.h
set(berth_cuda_launch_sources device/cuda/kernels/copy_elements.cc)
