# Owns: the Python interpreter that is built against, its library for test programs, and pybind11's headers.
# Choose the interpreter with -DPython_EXECUTABLE=... .
set(Python_FIND_VIRTUALENV FIRST)
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.Embed)

# Runs a line of Python; the output, stripped, is in `out`; empty when it fails.
function(gl_python out line)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "${line}" OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(text "")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

set(pybind11_include "${GRAPHLIFT_PYBIND11_INCLUDE}")
if(NOT pybind11_include)
  gl_python(pybind11_include "import pybind11; print(pybind11.get_include())")
endif()
