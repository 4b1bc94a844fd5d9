# src/exec/cuda/kernels.cu as an array in one C file. CUDA is no language of this project:
# nvcc makes one fat binary, for the library to load when the process has a driver.
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

function(weft_cuda_kernels out)
  set(folder ${PROJECT_SOURCE_DIR}/src)
  set(binary ${CMAKE_CURRENT_BINARY_DIR}/cuda_kernels.fatbin)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/cuda_kernels.c)
  set(targets "")
  if(WEFT_NVCC)
    weft_cuda_probe()
  endif()
  if(WEFT_NVCC AND WEFT_NVCC_WORKS)
    weft_cuda_targets(targets)
  endif()
  if(NOT targets)
    message(STATUS "no nvcc: the library is built without its CUDA engine")
    file(CONFIGURE OUTPUT ${source} CONTENT "/* Made by cmake/cuda_kernels.cmake: no nvcc. */
#include \"exec/cuda/kernels.h\"\n
const unsigned char cuda_kernels[1] = {0};
const size_t cuda_kernels_bytes = 0;\n" @ONLY)
    set(${out} ${source} PARENT_SCOPE)
    return()
  endif()
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/exec/cuda/*.cuh)
  add_custom_command(OUTPUT ${binary}
    COMMAND ${WEFT_NVCC} -fatbin -O3 -std=c++17 -fmad=false --threads 0 ${targets}
      -Werror all-warnings -D_Static_assert=static_assert -I${folder}
      -o ${binary} ${folder}/exec/cuda/kernels.cu
    DEPENDS ${folder}/exec/cuda/kernels.cu ${parts} ${folder}/exec/cuda/moves_abi.h
      ${folder}/sched/insn.h
    COMMENT "Compiling the CUDA kernels" VERBATIM)
  # The driver wants 8 bytes of alignment; one cannot say in C how many bytes a file has.
  file(CONFIGURE OUTPUT ${source} CONTENT "/* Made by cmake/cuda_kernels.cmake. */
#include \"exec/cuda/kernels.h\"\n
__asm__(\".section .rodata\\n\"
	\".balign 64\\n\"
	\".global cuda_kernels\\n.hidden cuda_kernels\\n\"
	\".type cuda_kernels, %object\\n\"
	\"cuda_kernels: .incbin \\\"@binary@\\\"\\n\"
	\".Lcuda_kernels_end:\\n\"
	\".size cuda_kernels, .Lcuda_kernels_end - cuda_kernels\\n\"
	\".balign 8\\n\"
	\".global cuda_kernels_bytes\\n.hidden cuda_kernels_bytes\\n\"
	\".type cuda_kernels_bytes, %object\\n\"
	\"cuda_kernels_bytes: .quad .Lcuda_kernels_end - cuda_kernels\\n\"
	\".size cuda_kernels_bytes, 8\\n\"
	\".previous\\n\");\n" @ONLY)
  # Link-time optimisation would put the assembly in a unit of its own, where others do not
  # see its symbols.
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${binary}
    COMPILE_OPTIONS -fno-lto)
  set(${out} ${source} PARENT_SCOPE)
endfunction()
