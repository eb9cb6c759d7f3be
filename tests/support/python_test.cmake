# probed_python_test(NAME MODULE[.CASE] [TIMEOUT seconds] [ENVIRONMENT name=value...])
# registers a unittest module of the calling directory, or one class of it, with ctest.
function(probed_python_test name module)
  cmake_parse_arguments(ARG "" "TIMEOUT" "ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND /usr/bin/python3 -m unittest -v ${module}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(environment PYTHONPATH=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.. PYTHONDONTWRITEBYTECODE=1
    PROBED_BUILD_DIR=${CMAKE_BINARY_DIR} ${ARG_ENVIRONMENT})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${environment}"
    SKIP_REGULAR_EXPRESSION "OK \\(skipped=[0-9]+\\)[\r\n]*$")
endfunction()
