# Kernels (.cu) as arrays in a C file. CUDA is no language of this project: nvcc makes a fat binary
# of each, for the library or a tool to load when the process has a driver.
option(WEFT_CUDA_LATER "leave the kernels out for now, as if there were no nvcc" OFF)
find_program(WEFT_NVCC nvcc PATHS /usr/local/cuda/bin /opt/cuda/bin DOC "CUDA's compiler")

# Can this nvcc compile, with a host compiler that it likes, what the kernels need? Asked
# once per build folder.
function(weft_cuda_probe)
  if(WEFT_NVCC_PROBED STREQUAL "${WEFT_NVCC}")
    return()
  endif()
  set(probe ${CMAKE_CURRENT_BINARY_DIR}/cuda_probe)
  file(WRITE ${probe}.cu "__global__ void probe(const __grid_constant__ int x) {}\n")
  execute_process(COMMAND ${WEFT_NVCC} -fatbin -std=c++17 --threads 0 -arch=sm_90
      -o ${probe}.fatbin ${probe}.cu
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    message(STATUS "${WEFT_NVCC} is of no use: ${said}")
  endif()
  string(COMPARE EQUAL "${result}" 0 works)
  set(WEFT_NVCC_WORKS ${works} CACHE INTERNAL "")
  execute_process(COMMAND ${WEFT_NVCC} -fatbin --compress-mode=size -arch=sm_90
      -o ${probe}.fatbin ${probe}.cu
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  string(COMPARE EQUAL "${result}" 0 packs)
  set(WEFT_NVCC_PACKS ${packs} CACHE INTERNAL "")
  set(WEFT_NVCC_PROBED ${WEFT_NVCC} CACHE INTERNAL "")
endfunction()

# Device code for the generations that this nvcc knows, and the lowest one's portable code
# for all others: -gencode options.
function(weft_cuda_targets out)
  execute_process(COMMAND ${WEFT_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  string(REGEX MATCHALL "sm_[0-9]+" known "${known}")
  set(options "")
  foreach(target 80 90 100)
    if("sm_${target}" IN_LIST known)
      set(code "sm_${target}")
      if(NOT options)
        string(APPEND code ",compute_${target}")
      endif()
      list(APPEND options "-gencode=arch=compute_${target},code=[${code}]")
    endif()
  endforeach()
  set(${out} ${options} PARENT_SCOPE)
endfunction()

# The fat binary of a source, packed where nvcc can (from 12.8 on): of 29 MB of the library's all
# 2 are left, and a process that loads one of them waits 3 ms longer at most.
function(weft_cuda_binary binary source folder targets depends)
  if(WEFT_NVCC_PACKS)
    list(APPEND targets --compress-mode=size)
  endif()
  get_filename_component(file ${source} NAME)
  add_custom_command(OUTPUT ${binary}
    COMMAND ${WEFT_NVCC} -fatbin -O3 -std=c++17 -fmad=false --threads 0 ${targets}
      -Werror all-warnings -D_Static_assert=static_assert -I${folder}
      -o ${binary} ${source}
    DEPENDS ${source} ${depends}
    COMMENT "Compiling the CUDA kernels of ${file}" VERBATIM)
endfunction()

# An array `name` with the bytes of a file, and `name`_bytes, as C source. The driver wants 8
# bytes of alignment; one cannot say in C how many bytes a file has.
function(weft_cuda_array out name binary)
  string(CONFIGURE "
__asm__(\".section .rodata\\n\"
	\".balign 64\\n\"
	\".global @name@\\n.hidden @name@\\n\"
	\".type @name@, %object\\n\"
	\"@name@: .incbin \\\"@binary@\\\"\\n\"
	\".L@name@_end:\\n\"
	\".size @name@, .L@name@_end - @name@\\n\"
	\".balign 8\\n\"
	\".global @name@_bytes\\n.hidden @name@_bytes\\n\"
	\".type @name@_bytes, %object\\n\"
	\"@name@_bytes: .quad .L@name@_end - @name@\\n\"
	\".size @name@_bytes, 8\\n\"
	\".previous\\n\");\n" text @ONLY)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# weft_cuda_source(OUT FOLDER folder HEADER header DEPENDS file .. ARRAYS array=source ..): a C file
# that defines the arrays which the header declares; their lengths are 0 where there is no nvcc.
# All files are named from that folder of the project.
function(weft_cuda_source out)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "FOLDER;HEADER" "DEPENDS;ARRAYS")
  set(folder ${PROJECT_SOURCE_DIR}/${given_FOLDER})
  list(TRANSFORM given_DEPENDS PREPEND ${folder}/)
  set(targets "")
  set(binaries "")
  set(arrays "")
  if(WEFT_NVCC AND NOT WEFT_CUDA_LATER)
    weft_cuda_probe()
  endif()
  if(WEFT_NVCC AND WEFT_NVCC_WORKS AND NOT WEFT_CUDA_LATER)
    weft_cuda_targets(targets)
  endif()
  if(NOT targets)
    message(STATUS "no nvcc: built without the kernels of ${given_HEADER}")
  endif()
  foreach(pair ${given_ARRAYS})
    string(REGEX MATCH "^([^=]+)=(.+)$" pair ${pair})
    set(name ${CMAKE_MATCH_1})
    set(cu ${folder}/${CMAKE_MATCH_2})
    set(binary ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
    if(targets)
      weft_cuda_binary(${binary} ${cu} ${folder} "${targets}" "${given_DEPENDS}")
      weft_cuda_array(array ${name} ${binary})
      list(APPEND binaries ${binary})
    else()
      set(array "\nconst unsigned char ${name}[1] = {0};
const size_t ${name}_bytes = 0;\n")
    endif()
    string(APPEND arrays "${array}")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${out}.c)
  file(CONFIGURE OUTPUT ${source} CONTENT "/* Made by cmake/cuda_kernels.cmake. */
#include \"${given_HEADER}\"\n@arrays@" @ONLY)
  # Link-time optimisation would put the assembly in a unit of its own, where others do not
  # see its symbols.
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${binaries}"
    COMPILE_OPTIONS -fno-lto)
  set(${out} ${source} PARENT_SCOPE)
endfunction()
