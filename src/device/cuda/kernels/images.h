// SPDX-License-Identifier: Apache-2.0
#pragma once

// The compiled kernels, one image for each .cu file: code for every architecture that the build is for,
// compressed.
extern "C" {
extern const unsigned char berth_cuda_image_rows[];
extern const unsigned char berth_cuda_image_rows_integers[];
extern const unsigned char berth_cuda_image_tiles[];
extern const unsigned char berth_cuda_image_elements[];
extern const unsigned char berth_cuda_image_fill[];
extern const unsigned char berth_cuda_image_gather[];
}
