# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` lays down: libraries, headers, find_package(berth), pkg-config, and the command line when it is built.
include(CMakePackageConfigHelpers)

install(TARGETS berth berth_static EXPORT berth-targets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS berth_plan berth_plan_static EXPORT berth-plan-targets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(BERTH_BUILD_CLI)
  install(TARGETS berth_cli)
endif()

set(berth_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
install(EXPORT berth-targets NAMESPACE berth:: DESTINATION ${berth_cmake_dir})
install(EXPORT berth-plan-targets NAMESPACE berth:: DESTINATION ${berth_cmake_dir})  # the component `plan`
configure_package_config_file(cmake/berth-config.cmake.in berth-config.cmake INSTALL_DESTINATION ${berth_cmake_dir})
write_basic_package_version_file(berth-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/berth-config.cmake ${PROJECT_BINARY_DIR}/berth-config-version.cmake DESTINATION ${berth_cmake_dir})

# Relative to the .pc file, so that the installed tree can be moved.
file(RELATIVE_PATH berth_pc_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
if(NOT "${berth_highway}" STREQUAL "")
  set(berth_pc_highway -lhwy)
endif()
foreach(pc berth berth-plan)
  configure_file(cmake/${pc}.pc.in ${pc}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
