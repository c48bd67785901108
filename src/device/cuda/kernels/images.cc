// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/images.h"

// The assembler finds the images in the build folder (src/CMakeLists.txt).
#define BERTH_CUDA_IMAGE(name)          \
  asm(".pushsection .rodata\n"          \
      ".balign 64\n"                    \
      ".globl berth_cuda_image_" #name  \
      "\n"                              \
      ".hidden berth_cuda_image_" #name \
      "\n"                              \
      "berth_cuda_image_" #name         \
      ":\n"                             \
      ".incbin \"" #name                \
      ".fatbin\"\n"                     \
      ".popsection\n")

BERTH_CUDA_IMAGE(rows);
BERTH_CUDA_IMAGE(rows_integers);
BERTH_CUDA_IMAGE(tiles);
BERTH_CUDA_IMAGE(elements);
BERTH_CUDA_IMAGE(fill);
BERTH_CUDA_IMAGE(gather);
