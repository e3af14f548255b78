# Runs a task of the SNIG services monitor that is a Tcl file with procedures:
#
#     tclsh tcl_task.tcl FILE identify
#     tclsh tcl_task.tcl FILE GID URI UUID TYPE VERSION ENTITY DESCRIPTION TMPDIR DATADIR
#
# "identify" of the file returns {name function description}; the function gets a dictionary whose key "job" has the
# service, and the two folders, and returns {status code info data timestamp}.

namespace eval ::ngis::tasks {
    proc make_ok_result {{data ""}} {
        return [list ok "" "" $data [clock seconds]]
    }
    proc make_warning_result {{code ""} {info ""} {data ""}} {
        return [list warning $code $info $data [clock seconds]]
    }
    proc make_error_result {{code ""} {info ""} {data ""}} {
        return [list error $code $data $info [clock seconds]]
    }
    proc make_not_applicable_result {} {
        return [list not_applicable "" "" "" [clock seconds]]
    }
}
namespace eval ::ngis::logger {
    proc emit {args} {}
}

fconfigure stdout -encoding utf-8
encoding system utf-8
set arguments [lassign $argv file]
if {[llength $arguments] == 1} {
    source -encoding utf-8 $file
    lassign [identify] name function description
    puts [list $name $description]
} else {
    lassign $arguments gid uri uuid type version entity description scratch data
    source -encoding utf-8 $file
    set service [dict create gid $gid uri $uri url $uri uuid $uuid uri_type $type type $type version $version \
                     entity $entity description $description]
    lassign [identify] name function
    puts [$function [dict create task $name job $service] $scratch $data]
}
