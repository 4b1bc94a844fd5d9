# The examples of the documents are built and run with the tests, so that they stay true.
file(GLOB examples CONFIGURE_DEPENDS docs/examples/*.c)
foreach(file ${examples})
  get_filename_component(name ${file} NAME_WE)
  add_executable(example_${name} ${file})
  target_link_libraries(example_${name} PRIVATE nccl Threads::Threads)
  set_target_properties(example_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME example_${name} COMMAND example_${name})
  set_tests_properties(example_${name} PROPERTIES LABELS api TIMEOUT 60)
endforeach()
