# cmake -DAR=ar -DOUTPUT=all.a "-DARCHIVES=a.a;b.a" -P merge_archives.cmake: one archive of all members.
set(script "CREATE ${OUTPUT}\n")
foreach(archive IN LISTS ARCHIVES)
  string(APPEND script "ADDLIB ${archive}\n")
endforeach()
string(APPEND script "SAVE\nEND\n")
file(WRITE "${OUTPUT}.mri" "${script}")
execute_process(COMMAND "${AR}" -M INPUT_FILE "${OUTPUT}.mri" COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE "${OUTPUT}.mri")
