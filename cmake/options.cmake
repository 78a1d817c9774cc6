# Owns: compiler, language level, flags and launcher that every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Classes are hidden, inline functions are not: hidden ones of std::string that a compiler takes from the library instead
# (gcc 13 does) can't be linked.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
# Most of what a file costs is its headers. With -DCMAKE_UNITY_BUILD=ON, as setup.py has it, ten files are compiled as one:
# a third of the time for all, more for a change of one file. So names are unique in a layer, in unnamed namespaces too.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)

# No debug information in Release: it doubles the time of the files that include torch.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0 -DNDEBUG")

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)  # lets ccache keep objects that were compiled with a precompiled header
endif()
if(GRAPHLIFT_SANITIZE)
  add_compile_options(-fsanitize=${GRAPHLIFT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${GRAPHLIFT_SANITIZE})
endif()

find_program(GRAPHLIFT_CCACHE ccache)
if(GRAPHLIFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${GRAPHLIFT_CCACHE})
endif()
