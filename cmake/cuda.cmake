# SPDX-License-Identifier: Apache-2.0
# Whether the CUDA backend is built: it needs the toolkit's compiler and headers. The driver is looked for at run time, so that one build
# runs on machines with and without one.
set(BERTH_CUDA AUTO CACHE STRING "The CUDA backend: ON, OFF, or AUTO when the toolkit is found")
set(BERTH_CUDA_ARCHITECTURES "75-virtual;90-real" CACHE STRING
    "GPU architectures to compile for, as in CMAKE_CUDA_ARCHITECTURES: 90-real is code, 75-virtual is PTX, which the driver compiles for any later one")

set(berth_cuda OFF)
if(BERTH_CUDA STREQUAL "AUTO" AND NOT BERTH_SANITIZE STREQUAL "")
  # The driver and a sanitizer's address space do not go together, and nvcc wants another compiler than some of
  # them.
elseif(BERTH_CUDA)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(berth_nvcc nvcc PATHS /usr/local/cuda/bin)  # often not in PATH
    mark_as_advanced(berth_nvcc)
    if(berth_nvcc)
      set(ENV{CUDACXX} ${berth_nvcc})
    endif()
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES ${BERTH_CUDA_ARCHITECTURES})  # for the kernels of tests
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit QUIET)
  endif()
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    set(berth_cuda ON)
  elseif(NOT BERTH_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "BERTH_CUDA=${BERTH_CUDA}: no CUDA toolkit was found; set CUDACXX to nvcc, or BERTH_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA backend: ${berth_cuda}")

# berth_compile_cuda(target): for kernels, each file on its own, also where CMake (3.31 and later) unites those
# of CUDA. The standard is set by hand: CMake 3.25 knows none later than 17 for nvcc.
function(berth_compile_cuda target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF CUDA_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON CUDA_RUNTIME_LIBRARY Static)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-Xcompiler=-Wall,-Wextra,-fno-omit-frame-pointer>)
endfunction()

# berth_cuda_images(VARIABLE FOLDER NAME...): compiles each FOLDER/NAME.cu to NAME.fatbin, code for every
# architecture in one file, and sets VARIABLE to their paths. The PTX of each stays in NAME.ptx/, for scripts/check-kernels.
function(berth_cuda_images variable folder)
  set(flags ${berth_cuda_kernel_options} -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -Xfatbin=-compress-all)
  foreach(architecture ${BERTH_CUDA_ARCHITECTURES})
    string(REGEX MATCH "^[0-9]+[a-z]?" number ${architecture})
    if(architecture MATCHES "-real$")
      list(APPEND flags -gencode arch=compute_${number},code=sm_${number})
    elseif(architecture MATCHES "-virtual$")
      list(APPEND flags -gencode arch=compute_${number},code=compute_${number})
    else()
      list(APPEND flags -gencode arch=compute_${number},code=[sm_${number},compute_${number}])
    endif()
  endforeach()
  if(CMAKE_CUDA_HOST_COMPILER)
    list(APPEND flags -ccbin ${CMAKE_CUDA_HOST_COMPILER})
  endif()
  set(images "")
  foreach(name ${ARGN})
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${name}.cu)
    set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
    set(kept ${CMAKE_CURRENT_BINARY_DIR}/${name}.ptx)
    file(MAKE_DIRECTORY ${kept})
    add_custom_command(OUTPUT ${image} DEPENDS ${source} DEPFILE ${image}.d VERBATIM COMMENT "Compiling kernels: ${folder}/${name}.cu"
      COMMAND ${CMAKE_CUDA_COMPILER} -fatbin ${flags} -keep -keep-dir ${kept} -MD -MF ${image}.d -MT ${image} -o ${image} ${source})
    list(APPEND images ${image})
  endforeach()
  set(${variable} "${images}" PARENT_SCOPE)
endfunction()
