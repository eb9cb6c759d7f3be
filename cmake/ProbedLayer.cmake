# probed_layer(NAME [DEPS target...]): the static library of this directory's *.cc, with the house
# warnings. Include paths start at the root of the tree.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(probed_options INTERFACE)
target_include_directories(probed_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(probed_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual;-Wimplicit-fallthrough>
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(PROBED_FUZZ)
  target_compile_options(probed_options INTERFACE -fsanitize=fuzzer-no-link)
  set(PROBED_SANITIZE address)
endif()
if(PROBED_SANITIZE)
  target_compile_options(probed_options INTERFACE -fsanitize=${PROBED_SANITIZE} -fno-omit-frame-pointer)
  target_compile_definitions(probed_options INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(probed_options INTERFACE -fsanitize=${PROBED_SANITIZE})
endif()

function(probed_layer name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  if(sources)
    add_library(probed_${name} STATIC ${sources})
    target_link_libraries(probed_${name} PUBLIC probed_options ${ARG_DEPS})
  else()
    add_library(probed_${name} INTERFACE)
    target_link_libraries(probed_${name} INTERFACE probed_options ${ARG_DEPS})
  endif()
endfunction()

# probed_test(NAME SOURCES file... DEPS target...): one GoogleTest binary, registered case by case,
# each with the binary's name as its label.
# LOCK name: its cases do not run beside others with that lock.
function(probed_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;LOCK" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE probed_options ${ARG_DEPS} GTest::gtest_main GTest::gmock)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(PROBED_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")  # what is instrumented is slower
  endif()
  set(lock)
  if(ARG_LOCK)
    set(lock RESOURCE_LOCK ${ARG_LOCK})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTIES LABELS ${name} TIMEOUT ${ARG_TIMEOUT} ${lock})
endfunction()
