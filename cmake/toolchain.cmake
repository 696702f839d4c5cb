# Language, flags, compiler cache and linker: what holds for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Libraries are found relative to the program, so that a build tree can be moved.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
# A new libumbra.so does not mean that every test and example is linked again.
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)

add_library(umbra_warnings INTERFACE)
target_compile_options(umbra_warnings INTERFACE
  -Wall -Wextra
  -Werror=narrowing                # where a list of numbers would be made of two pointers, say
  -Wno-unused-parameter            # an operator's lambdas name every argument of its schema
  -Wno-missing-field-initializers  # options are structs, given by designated initialisers
  -Wno-psabi)                      # vector types are passed between functions of one object file only

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(umbra_warnings INTERFACE
    -Wno-bitwise-instead-of-logical  # cheaper where both sides are at hand
    -Wno-braced-scalar-init          # mean({{1}}): a list, not a number
    -Wno-c++2b-extensions            # lambdas without a list of parameters
    -Wno-pass-failed)                # not every functor's loop has a vector form
endif()

# GCC collects its garbage each time its memory has doubled, from a few megabytes on: a twentieth of a build goes there. Here it
# does so from a gigabyte on, which no file of ours takes.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=1048576)
endif()

if(UMBRA_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
endif()
if(UMBRA_SANITIZE_THREADS)
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -g1 -Wno-tsan)
  add_link_options(-fsanitize=thread)
endif()

find_program(UMBRA_MOLD mold)
if(UMBRA_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

find_program(UMBRA_CCACHE ccache)
if(UMBRA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths count relative to the checkout, so that two checkouts share what they compile. What a file depends on is what the
  # compiler says it read, the headers inside of a precompiled one among it (-fpch-deps): they are compared one by one,
  # while the precompiled file, whose bytes differ from place to place, is known by a checksum of what it was made of
  # and is itself not kept (tools/cached_compiler).
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_PCH_EXTSUM=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CMAKE_SOURCE_DIR}/tools/cached_compiler)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# What a target with a precompiled header, or with that of another, is compiled with: else ccache passes every file by.
if(UMBRA_CCACHE)
  set(umbra_precompiled_options -fpch-preprocess)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND umbra_precompiled_options -fpch-deps)
  endif()
endif()
# umbra_precompile(<target> <header>): precompiles a header, named as an #include names it, for a target.
function(umbra_precompile target header)
  target_precompile_headers(${target} PRIVATE <${header}>)
  if(UMBRA_CCACHE)
    target_compile_options(${target} PRIVATE ${umbra_precompiled_options})
  endif()
endfunction()
