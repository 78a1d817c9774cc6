# Owns: where oneDNN's headers are (onednn_include); empty: built without oneDNN. Its library is found at run time only, see
# backends/cpu/onednn/library.h. Choose others with -DGRAPHLIFT_ONEDNN_INCLUDE=..., none with -DGRAPHLIFT_ONEDNN=OFF.
option(GRAPHLIFT_ONEDNN "Use oneDNN for contractions and convolutions where its headers are found" ON)
set(GRAPHLIFT_ONEDNN_INCLUDE "" CACHE PATH "oneDNN's headers; empty: the wheel onednn-devel-cpu-gomp of the interpreter")

set(onednn_include "")
if(GRAPHLIFT_ONEDNN)
  set(onednn_include "${GRAPHLIFT_ONEDNN_INCLUDE}")
  if(NOT onednn_include)
    # Asked of the wheel itself: also right where pip builds in an environment of its own.
    gl_python(onednn_header "import importlib.metadata as m; d = m.distribution('onednn-devel-cpu-gomp'); \
print(next(str(d.locate_file(f).resolve()) for f in d.files if f.match('oneapi/dnnl/dnnl.h')))")
    if(onednn_header)
      get_filename_component(onednn_include "${onednn_header}/../../.." ABSOLUTE)
    endif()
  endif()
  if(onednn_include)
    message(STATUS "oneDNN's headers: ${onednn_include}")
  else()
    message(STATUS "oneDNN's headers are missing (pip install onednn-devel-cpu-gomp): torch's kernels are used")
  endif()
endif()

# A layer's sources that this build leaves out: either those that include oneDNN's headers, or their stand-in.
if(onednn_include)
  set(onednn_left_out "/onednn_absent\\.cpp$")
else()
  set(onednn_left_out "/onednn/")
endif()
