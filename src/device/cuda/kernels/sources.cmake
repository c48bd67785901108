# SPDX-License-Identifier: Apache-2.0
# The kernels of the CUDA backend, from src/: what nvcc compiles to images, with which options, and what the C++ compiler does.
set(berth_cuda_kernels elements fill gather rows rows_integers tiles)
set(berth_cuda_kernel_options -std=c++20 -O3 --expt-relaxed-constexpr)  # conversions call the constexpr functions of berth/base/float_types.h
set(berth_cuda_launch_sources device/cuda/kernels/copy_elements.cc device/cuda/kernels/images.cc device/cuda/kernels/kernel_set.cc device/cuda/kernels/launch.cc)
