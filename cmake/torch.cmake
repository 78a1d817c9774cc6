# Owns: how to compile and link against the installed torch: target gl_installed_torch. Everything is asked of the package
# itself, so that CPU and CUDA builds of torch work alike, without a CUDA toolkit.
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cmake/describe_torch.py"
  OUTPUT_VARIABLE torch_description ERROR_VARIABLE torch_error RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
if(failed)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no usable torch; install one (2.11 to 2.14), or configure with "
                      "-DGRAPHLIFT_TORCH=OFF for the torch-free layers.\n${torch_error}")
endif()
list(POP_FRONT torch_description torch_version torch_include torch_library_dir torch_abi torch_relative_lib)
message(STATUS "torch ${torch_version}: ${torch_library_dir}")

add_library(gl_installed_torch INTERFACE)
target_include_directories(gl_installed_torch SYSTEM INTERFACE
  "${torch_include}" "${torch_include}/torch/csrc/api/include")
target_compile_definitions(gl_installed_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${torch_abi})
target_compile_options(gl_installed_torch INTERFACE -Wno-deprecated-declarations)
foreach(name torch_python torch torch_cpu c10)
  target_link_libraries(gl_installed_torch INTERFACE "${torch_library_dir}/lib${name}.so")
endforeach()
# A CUDA build's libraries name others that only the package's own loader finds.
target_link_options(gl_installed_torch INTERFACE -Wl,--allow-shlib-undefined -Wl,--no-as-needed)
# Beside an installed torch (a wheel) first, then where torch was when this was built (an editable install).
set(torch_rpath "$ORIGIN/${torch_relative_lib}" "${torch_library_dir}")

if(NOT pybind11_include)
  set(pybind11_include "${torch_include}")
endif()
