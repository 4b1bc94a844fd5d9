# What `make install` puts where. Included last, when every target exists.
get_target_property(WEFT_NCCL_VERSION nccl VERSION)

install(TARGETS nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/nccl.h include/nccl_device.h include/weft.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/nccl_device DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.h)

# Every program the tools folder builds into bin/.
function(weft_programs folder out)
  get_property(names DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  set(found)
  foreach(name ${names})
    get_target_property(type ${name} TYPE)
    if(type STREQUAL EXECUTABLE)
      list(APPEND found ${name})
    endif()
  endforeach()
  foreach(sub ${below})
    weft_programs(${sub} more)
    list(APPEND found ${more})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()
weft_programs(${CMAKE_CURRENT_SOURCE_DIR}/tools programs)
if(programs)
  # Found from wherever the tree is installed: ../lib beside ../bin.
  file(RELATIVE_PATH to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
  install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# The plugin for NCCL, where libfabric was there to build it.
if(TARGET nccl-net-ofi)
  install(TARGETS nccl-net-ofi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set(plugins nccl-net-ofi)
endif()
add_custom_target(product DEPENDS nccl ${programs} ${plugins})

# nccl.pc is written at install time, because --prefix may differ from the configured one.
install(CODE "
  set(WEFT_NCCL_VERSION ${WEFT_NCCL_VERSION})
  set(WEFT_PC_LIBDIR \"\\\${prefix}/${CMAKE_INSTALL_LIBDIR}\")
  set(WEFT_PC_INCLUDEDIR \"\\\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}\")
  configure_file(\"${CMAKE_CURRENT_SOURCE_DIR}/nccl.pc.in\"
    \"${CMAKE_BINARY_DIR}/nccl.pc\" @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/nccl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(section 1 3 7)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
# Completion: one file for bash, which it looks for under the name of each program.
set(completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES tools/completion/weft.bash DESTINATION ${completions} RENAME weft)
foreach(program ${programs})
  if(NOT program STREQUAL weft)
    install(CODE "
      file(CREATE_LINK weft
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${completions}/${program}\" SYMBOLIC)")
  endif()
endforeach()
install(FILES tools/completion/_weft DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
